/** The standalone page: the view, over all of the window, fed by the server that the page came from. */

import '../view/view.css';
import './page.css';

import { Feed, mountMonitor, type Monitor } from '../index';
import { themeButton } from './theme';

/** The stream beside this page, under whatever prefix a proxy has put it. */
function streamUrl(): URL {
  const url = new URL('api/v1/stream', document.baseURI);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  return url;
}

const host = document.getElementById('gpumon');
if (host !== null) {
  let monitor: Monitor | null = null;
  const theme = themeButton(() => monitor?.themeChanged());
  monitor = mountMonitor(host, {
    feed: new Feed({ openSocket: () => new WebSocket(streamUrl()) }),
    title: 'gpumon',
    actions: [theme],
  });
}
