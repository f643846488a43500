/** The connection from JupyterLab to gpumon's server, through the authenticating Jupyter proxy. */

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import {
  ENCODING,
  Feed,
  plainText,
  setLocale,
  setTranslator,
  type FeedOptions,
} from '@gpumon/page/feed';
import type { Diagnosis, SocketLike } from '@gpumon/page';
import type { TranslationBundle } from '@jupyterlab/translation';

import { version } from '../../package.json';
import { readMarks } from './launcher-entry';

export { loadXids } from '@gpumon/page/feed';

type Request = NonNullable<FeedOptions['request']>;

const ROUTE = 'gpumon';
/**
 * The maximum time to wait for an answer. After gpumon's server exits, the proxy tries to restart
 * it for about half a minute and does not answer during this time.
 */
const TIMEOUT_MS = 5000;
/** JupyterHub's status code for a user's server that is not running. */
const STATUS_STOPPED = 424;
/** The status code used here if no response arrived in time. */
const STATUS_TIMEOUT = 0;

/** Returns a feed through the proxy, and sets the language of all views. */
export function createFeedAndSetLanguage(
  settings: ServerConnection.ISettings,
  trans: TranslationBundle,
  language: string,
): Feed {
  setTranslator(trans);
  // English is JupyterLab's default, so it may not be the user's choice. In this case, numbers and
  // dates are shown in the browser's language.
  setLocale(language === 'en' ? undefined : language);
  return new Feed({
    openSocket: () => openStream(settings),
    request: createRequest(settings),
    diagnose: () => diagnoseStream(settings, trans),
    checkVersion: (version) => explainVersionMismatch(version, trans),
    checkInstallation: () => explainOtherPackage(settings, trans),
  });
}

/**
 * Returns the feed of a fleet node at a path such as `nodes/node-01/`. The node may run any
 * version.
 */
export function nodeFeed(
  settings: ServerConnection.ISettings,
  trans: TranslationBundle,
  path: string,
): Feed {
  return new Feed({
    openSocket: () => openStream(settings, path),
    request: createRequest(settings, path),
    readOnly: true,
    diagnose: async () =>
      (await diagnoseNode(createRequest(settings, path), trans)) ??
      (await diagnoseStream(settings, trans)),
  });
}

/**
 * Returns a function that sends requests through the proxy to the server, or to a path below it.
 */
export function createRequest(settings: ServerConnection.ISettings, below = ''): Request {
  return (path, init = {}) =>
    ServerConnection.makeRequest(URLExt.join(settings.baseUrl, ROUTE, below, path), init, settings);
}

/**
 * Returns why a node cannot be shown: the user must sign in, or the node's server reports a
 * problem.
 */
async function diagnoseNode(request: Request, trans: TranslationBundle): Promise<Diagnosis | null> {
  try {
    const response = await request('api/v1/session');
    if (response.status === 401) {
      return {
        title: trans.__('Not signed in'),
        message: trans.__('This node requires a token or a password. Open its page to sign in.'),
      };
    }
    const text = response.ok ? '' : (await response.text()).trim();
    return text === ''
      ? null
      : { title: trans.__('This node cannot be shown'), message: plainText(text) };
  } catch {
    return null;
  }
}

/** Returns the URL of the stream, with the token if Jupyter expects the token in the URL. */
export function streamUrl(settings: ServerConnection.ISettings, below = ''): string {
  const url = URLExt.join(settings.wsUrl, ROUTE, below, `api/v1/stream?encoding=${ENCODING}`);
  return settings.appendToken && settings.token !== ''
    ? `${url}&token=${encodeURIComponent(settings.token)}`
    : url;
}

function openStream(settings: ServerConnection.ISettings, below?: string): SocketLike {
  return new settings.WebSocket(streamUrl(settings, below));
}

/**
 * Returns why the stream cannot be opened and how to fix it, or `null` if the reason is unknown.
 */
export async function diagnoseStream(
  settings: ServerConnection.ISettings,
  trans: TranslationBundle,
): Promise<Diagnosis | null> {
  const status = await requestHealthStatus(settings);
  return (
    (failedToStart(status) ? await explainOtherPackage(settings, trans) : null) ??
    explainStatus(status, trans)
  );
}

/**
 * Returns the status code of the proxy's answer, 0 after a timeout, or `null` if the request
 * failed.
 */
async function requestHealthStatus(settings: ServerConnection.ISettings): Promise<number | null> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const url = URLExt.join(settings.baseUrl, ROUTE, 'healthz');
    const response = await ServerConnection.makeRequest(url, { signal }, settings);
    // If the user is not logged in, Jupyter redirects the request to the login page, which also has
    // status 200. Therefore the content is checked as well.
    const isAnother = response.ok && (await response.text()).trim() !== 'ok';
    return isAnother ? 401 : response.status;
  } catch {
    return signal.aborted ? STATUS_TIMEOUT : null;
  }
}

function failedToStart(status: number | null): boolean {
  return status !== null && (status >= 500 || status === STATUS_TIMEOUT);
}

/**
 * Explains how to replace an unrelated package that is also named `gpumon` and has files of the
 * same names. Returns `null` if no such package is installed.
 */
async function explainOtherPackage(
  settings: ServerConnection.ISettings,
  trans: TranslationBundle,
): Promise<Diagnosis | null> {
  const { otherPackage: other } = await readMarks(settings);
  return other === null
    ? null
    : {
        title: trans.__('Another package called gpumon is installed'),
        message: trans.__(
          'The package gpumon %1 in the Python environment of Jupyter belongs to another program. Its files have the same names as files of this program. Run this command in that environment, reinstall the wheel of this program, then restart Jupyter:',
          other,
        ),
        command: 'pip uninstall gpumon jupyterlab-gpumon',
      };
}

/** Explains the status code of the proxy's answer; `null` means that there was none. */
export function explainStatus(status: number | null, trans: TranslationBundle): Diagnosis | null {
  const tell = (title: string, message: string, command?: string): Diagnosis => ({
    title,
    message,
    ...(command !== undefined && { command }),
  });
  if (status === null) {
    return tell(
      trans.__('No connection'),
      trans.__('The Jupyter server is not responding. Retrying automatically.'),
    );
  }
  if (failedToStart(status)) {
    const what =
      status === STATUS_TIMEOUT
        ? trans.__('Jupyter has started the gpumon server, but it is not responding.')
        : trans.__('Jupyter could not start the gpumon server, or it exited (HTTP %1).', status);
    const fix = trans.__(
      'Retrying automatically. To see the cause, run this in a terminal of the Python environment that Jupyter runs in:',
    );
    const title = trans.__('gpumon failed to start');
    return tell(title, `${what} ${fix}`, 'gpumon serve --listen 127.0.0.1:0');
  }
  if (status >= 200 && status < 300) {
    return tell(
      trans.__('No WebSocket connection'),
      trans.__(
        'gpumon responds, but the WebSocket connection fails. Allow WebSockets in every proxy to Jupyter.',
      ),
    );
  }
  switch (status) {
    case 404:
      return tell(
        trans.__('gpumon is not proxied by this Jupyter server'),
        trans.__('jupyter-server-proxy is missing or disabled. Run this, then restart Jupyter:'),
        'pip install jupyter-server-proxy && jupyter server extension enable jupyter_server_proxy',
      );
    case 401:
    case 403:
      return tell(
        trans.__('Not logged in'),
        trans.__('Jupyter refuses the connection. Reload the page and log in again.'),
      );
    case STATUS_STOPPED:
      return tell(
        trans.__('The Jupyter server is stopped'),
        trans.__('JupyterHub stops idle servers. Reload the page to start yours again.'),
      );
    default:
      return null;
  }
}

/**
 * Explains that the versions of server and panel do not match, or returns `null` if they do. After
 * an update of gpumon, Jupyter may still run the old server, and a browser may still show the old
 * panel.
 */
export function explainVersionMismatch(
  server: string,
  trans: TranslationBundle,
  panel = version,
): Diagnosis | null {
  const [major, minor] = parseMajorAndMinor(server);
  const [ourMajor, ourMinor] = parseMajorAndMinor(panel);
  const difference = major - ourMajor || minor - ourMinor;
  if (Number.isNaN(difference) || difference === 0) {
    return null;
  }
  const isOld = difference < 0;
  const mismatch = trans.__(
    'The server runs gpumon %1, but this panel is version %2. Values may be wrong or incomplete.',
    server,
    panel,
  );
  const fix = isOld
    ? trans.__(
        'Restart Jupyter. If that does not help, install version %1 where Jupyter runs:',
        panel,
      )
    : trans.__(
        'Reload the page. If that does not help, install version %1 where JupyterLab runs:',
        server,
      );
  return {
    title: isOld
      ? trans.__('gpumon is too old for this panel')
      : trans.__('This panel is too old for gpumon'),
    message: `${mismatch} ${fix}`,
    command: 'pip install jupyterlab_gpumon-*.whl',
  };
}

/** Returns the major and minor version: `0.1` for `0.1.3`. */
function parseMajorAndMinor(text: string): [number, number] {
  const [major, minor] = text.split('.').map(Number);
  return [major ?? NaN, minor ?? NaN];
}
