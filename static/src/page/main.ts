/** The standalone page: all GPUs, or charts, over all of the window, fed by the server that the page came from. */

import '../view/view.css';
import './page.css';
import './print.css';

import { Feed, mountDashboard, mountMonitor } from '../index';
import { h } from '../lib/dom';
import { ENCODING } from '../lib/inflate';
import type { Request } from '../model/request';
import { diagnose, diagnoseNode } from './diagnose';
import { FLEET, fleetLink, showFleet } from './fleet';
import { FleetPlace } from './fleet-place';
import { SignIn } from './sign-in';
import { themeButton } from './theme';

/** What the page shows. */
export interface Shown {
  themeChanged: () => void;
  dispose: () => void;
  /** Somebody has signed in. */
  retry?: () => void;
  /** Shows what another address says; `false` where that is something else altogether. */
  show: (address: string) => boolean;
}

/** Begins the part of the address that says which charts to show: `#charts?gpu=0&span=5`. */
const CHARTS = '#charts';

/** The stream beside this page, under whatever prefix a proxy has put it. */
function streamUrl(): URL {
  const url = new URL(`api/v1/stream?encoding=${ENCODING}`, document.baseURI);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  return url;
}

function start(host: HTMLElement): void {
  const request: Request = (path, init) => fetch(new URL(path, document.baseURI), init);
  const signIn = new SignIn(request, () => {
    feed.retryNow();
    shown?.retry?.();
  });
  const isNode = FleetPlace.above() !== null;
  const feed = new Feed({
    openSocket: () => new WebSocket(streamUrl()),
    request,
    // What is shown of a node is passed on by the server of its fleet, which changes nothing there.
    readOnly: isNode,
    diagnose: async () =>
      (await signIn.check()) ?? (isNode ? await diagnoseNode(request) : null) ?? diagnose(),
  });
  // Between one view and the other, the connection and what is known stay.
  const subscription = feed.subscribe(() => undefined);
  subscription.update({ active: false });
  let shown: Shown | null = null;
  const own = [signIn.signOut, themeButton(() => shown?.themeChanged())];
  const toFleet = fleetLink(feed);
  const onRefused = (): void => void signIn.check();
  const make = (address: string): Shown => {
    if (address.startsWith(FLEET)) {
      return showFleet(host, { request, feed, actions: own, onRefused });
    }
    return address.startsWith(CHARTS)
      ? charts(host, feed, [toFleet, ...own])
      : overview(host, feed, [toFleet, ...own]);
  };
  const follow = (): void => {
    if (shown?.show(location.hash) !== true) {
      shown?.dispose();
      shown = make(location.hash);
    }
  };
  window.addEventListener('hashchange', follow);
  follow();
}

function overview(host: HTMLElement, feed: Feed, own: readonly HTMLElement[]): Shown {
  const all = h('a', { class: 'gpumon-chip page-link', href: CHARTS }, 'Charts');
  const monitor = mountMonitor(host, {
    feed,
    title: 'gpumon',
    actions: [all, ...own],
    onOpenGpu: (index) => {
      location.hash = `${CHARTS}?gpu=${index}`;
    },
  });
  return {
    ...monitor,
    show: (address) => !address.startsWith(CHARTS) && !address.startsWith(FLEET),
  };
}

function charts(host: HTMLElement, feed: Feed, own: readonly HTMLElement[]): Shown {
  const back = h('a', { class: 'gpumon-chip page-link', href: '#' }, 'All GPUs');
  const addressIn = (address: string): string => address.slice(CHARTS.length + 1);
  let current = location.hash;
  const dashboard = mountDashboard(host, {
    feed,
    title: 'gpumon',
    address: addressIn(current),
    actions: [back, ...own],
    onAddress: (address) => {
      // Who went elsewhere meanwhile is to stay there.
      if (location.hash === current) {
        history.replaceState(null, '', address === '' ? CHARTS : `${CHARTS}?${address}`);
        current = location.hash;
      }
    },
  });
  // The keys of the charts work at once.
  host.querySelector<HTMLElement>('[tabindex]')?.focus({ preventScroll: true });
  return {
    ...dashboard,
    show: (address) => {
      if (address !== current && address.startsWith(CHARTS)) {
        current = address;
        dashboard.show(addressIn(address));
      }
      return address.startsWith(CHARTS);
    },
  };
}

const host = document.getElementById('gpumon');
if (host !== null) {
  host.replaceChildren();
  start(host);
}
