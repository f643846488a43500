/** What is asked of the server over HTTP, and what to say where it refuses. */

import { plainText } from '../lib/text';
import { trans } from '../lib/translation';
import type { FeedOptions } from './feed';

export type Request = NonNullable<FeedOptions['request']>;

/** What changes something carries it: no page of another origin can send it. */
export const OWN_HEADERS = { 'X-Gpumon': 'run' };

/** The server's answer; `null` where there is none, and then why. */
export async function answerOf(
  response: ReturnType<Request>,
): Promise<{ json: unknown; why: string | null }> {
  try {
    const answer = await response;
    if (answer.ok) {
      return { json: await answer.json(), why: null };
    }
    return { json: null, why: plainText((await answer.text()).trim()) || `HTTP ${answer.status}` };
  } catch {
    return {
      json: null,
      why: trans.__('The server is not responding, or is too old for this. Restart it.'),
    };
  }
}
