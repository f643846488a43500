/** Whether somebody wants to be told of alerts, found out without starting a gpumon server. */

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

/** What `gpumon/jupyter.py` puts behind the address where the server will tell of alerts, its own or those of the server that it joins. */
const MARK = '?alerts';

interface ServersInfo {
  server_processes: readonly { name: string; launcher_entry?: { path_info?: string } }[];
}

/** Asks jupyter-server-proxy what it knows of gpumon; false also where it does not answer. */
export async function hasAlertRules(settings: ServerConnection.ISettings): Promise<boolean> {
  try {
    const url = URLExt.join(settings.baseUrl, 'server-proxy/servers-info');
    const response = await ServerConnection.makeRequest(url, {}, settings);
    const known = response.ok ? ((await response.json()) as ServersInfo).server_processes : [];
    const gpumon = known.find(({ name }) => name === 'gpumon');
    return gpumon?.launcher_entry?.path_info?.endsWith(MARK) === true;
  } catch {
    // A Jupyter server without the proxy has no gpumon either.
    return false;
  }
}
