/** Why the stream beside this page cannot be opened, where the server itself responds. */

import { trans } from '../lib/translation';
import type { Diagnosis } from '../model/store';

const TIMEOUT_MS = 5000;

export async function diagnose(): Promise<Diagnosis | null> {
  const response = await fetch(new URL('healthz', document.baseURI), { signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (!response.ok || (await response.text()).trim() !== 'ok') {
    return null;
  }
  return {
    title: trans.__('No WebSocket connection'),
    message: trans.__(
      'gpumon responds, but its WebSocket cannot be opened. A reverse proxy has to pass on the headers Upgrade and Connection, and the server has to know its address:',
    ),
    command: `gpumon serve --public-origin ${location.origin}`,
  };
}
