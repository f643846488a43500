/** What the Python package reports to the panel through jupyter-server-proxy, without starting a gpumon server. */

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

/** An answer takes milliseconds; without one, nothing is known. */
const TIMEOUT_MS = 5000;

interface ServersInfo {
  server_processes: readonly { name: string; launcher_entry?: { path_info?: string } }[];
}

/** Returns whether the server will notify of alerts, by its own rules or by those of the server that it joins. */
export async function hasAlertRules(settings: ServerConnection.ISettings): Promise<boolean> {
  return (await launcherQuery(settings)).has('alerts');
}

/** Returns the version of the package called gpumon that is another program, if Jupyter's environment has it. */
export async function findOtherPackage(settings: ServerConnection.ISettings): Promise<string | null> {
  return (await launcherQuery(settings)).get('other');
}

/** Returns the query of gpumon's launcher entry, which `gpumon/jupyter.py` writes; an empty one without an answer. */
async function launcherQuery(settings: ServerConnection.ISettings): Promise<URLSearchParams> {
  try {
    const url = URLExt.join(settings.baseUrl, 'server-proxy/servers-info');
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await ServerConnection.makeRequest(url, { signal }, settings);
    const known = response.ok ? ((await response.json()) as ServersInfo).server_processes : [];
    const gpumon = known.find(({ name }) => name === 'gpumon');
    return new URLSearchParams(gpumon?.launcher_entry?.path_info?.split('?')[1]);
  } catch {
    // A Jupyter server without the proxy has no gpumon either.
    return new URLSearchParams();
  }
}
