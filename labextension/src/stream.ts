/** The way from JupyterLab to gpumon's server: through the proxy of the Jupyter server, which checks who asks. */

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import type { Diagnosis, SocketLike } from '@gpumon/page';

/** The name under which the proxy knows gpumon. */
const ROUTE = 'gpumon';

/** The address of the stream. The token goes along only where Jupyter wants it in the address. */
export function streamUrl(settings: ServerConnection.ISettings): string {
  const url = URLExt.join(settings.wsUrl, ROUTE, 'api/v1/stream');
  return settings.appendToken && settings.token !== '' ? `${url}?token=${encodeURIComponent(settings.token)}` : url;
}

export function openStream(settings: ServerConnection.ISettings): SocketLike {
  return new settings.WebSocket(streamUrl(settings));
}

/** Finds out why the stream cannot be opened, and what to do; `null` where Jupyter itself does not answer. */
export async function diagnose(settings: ServerConnection.ISettings): Promise<Diagnosis | null> {
  try {
    const response = await ServerConnection.makeRequest(URLExt.join(settings.baseUrl, ROUTE, 'healthz'), {}, settings);
    return explain(response.status);
  } catch {
    return { title: 'No connection', message: 'The Jupyter server does not answer. It is tried again by itself.' };
  }
}

/** What the proxy's answer means for somebody who wants to see GPUs. */
export function explain(status: number): Diagnosis | null {
  if (status === 404) {
    return {
      title: 'The way to gpumon is missing',
      message:
        'This Jupyter server has no route to gpumon, because jupyter-server-proxy is not installed or not enabled ' +
        'there. Run this in the Python environment that Jupyter runs in, then restart Jupyter:',
      command: 'pip install jupyter-server-proxy',
    };
  }
  if (status === 401 || status === 403) {
    return { title: 'Not logged in', message: 'Jupyter refuses the connection. Reload the page and log in again.' };
  }
  if (status >= 500) {
    return {
      title: 'gpumon does not start',
      message:
        `Jupyter could not start gpumon's server, or has lost it (HTTP ${String(status)}). ` +
        'It is tried again by itself. Run this in a terminal to see why:',
      command: 'gpumon serve --listen 127.0.0.1:0',
    };
  }
  if (status >= 200 && status < 300) {
    return {
      title: 'No stream',
      message:
        "gpumon answers, but its stream cannot be opened. If this lasts, something between the browser and Jupyter doesn't let WebSockets through.",
    };
  }
  return null;
}
