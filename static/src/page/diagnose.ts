import { plainText } from '../lib/text';
import { trans } from '../lib/translation';
import type { Request } from '../model/request';
import type { Diagnosis } from '../model/store';

const TIMEOUT_MS = 5000;

/** Returns why the fleet's server cannot open the node of this page, or `null` if it can. */
export async function diagnoseNode(request: Request): Promise<Diagnosis | null> {
  const response = await request('api/v1/session', { signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (response.ok || response.status === 401) {
    return null;
  }
  const message = plainText((await response.text()).trim());
  return message === '' ? null : { title: trans.__('This node cannot be opened'), message };
}

/**
 * Returns why the stream cannot be opened although the server responds, or `null` if the server
 * does not respond.
 */
export async function diagnoseConnection(): Promise<Diagnosis | null> {
  const response = await fetch(new URL('healthz', document.baseURI), {
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!response.ok || (await response.text()).trim() !== 'ok') {
    return null;
  }
  return {
    title: trans.__('No WebSocket connection'),
    message: trans.__(
      'gpumon responds, but its WebSocket cannot be opened. A reverse proxy must forward the headers Upgrade and Connection. Start the server with the address of this page:',
    ),
    command: `gpumon serve --public-origin ${location.origin}`,
  };
}
