/**
 * Information that the panel reads from the Python package through jupyter-server-proxy. No gpumon
 * server has to run for this.
 */

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

/** The maximum time to wait for an answer, which usually takes milliseconds. */
const TIMEOUT_MS = 5000;

interface ServersInfo {
  server_processes: readonly { name: string; launcher_entry?: { path_info?: string } }[];
}

/** The flags in the query of gpumon's launcher entry. */
export interface LauncherMarks {
  /**
   * Whether the server will report alerts, either from its own rules or from the rules of another
   * server that it joins.
   */
  readonly alerts: boolean;
  /** Whether the server will show a fleet. */
  readonly fleet: boolean;
  /**
   * The version of an unrelated package that is also named `gpumon`; `null` if that package is not
   * installed in Jupyter's environment.
   */
  readonly otherPackage: string | null;
}

/** Reads the flags. All are unset if the Jupyter server does not answer. */
export async function readMarks(settings: ServerConnection.ISettings): Promise<LauncherMarks> {
  const query = await launcherQuery(settings);
  return {
    alerts: query.has('alerts'),
    fleet: query.has('fleet'),
    otherPackage: query.get('other'),
  };
}

/**
 * Returns the query of gpumon's launcher entry, which `gpumon/jupyter.py` writes. It is empty if
 * the Jupyter server does not answer.
 */
async function launcherQuery(settings: ServerConnection.ISettings): Promise<URLSearchParams> {
  try {
    const url = URLExt.join(settings.baseUrl, 'server-proxy/servers-info');
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await ServerConnection.makeRequest(url, { signal }, settings);
    const known = response.ok ? ((await response.json()) as ServersInfo).server_processes : [];
    const gpumon = known.find(({ name }) => name === 'gpumon');
    return new URLSearchParams(gpumon?.launcher_entry?.path_info?.split('?')[1]);
  } catch {
    // A Jupyter server without jupyter-server-proxy has no launcher entries.
    return new URLSearchParams();
  }
}
