/** HTTP requests to the server, and the reasons for their failure. */

import { plainText } from '../lib/text';
import { trans } from '../lib/translation';

/** Sends an HTTP request to the server. `path` is a path such as `api/v1/runs`. */
export type Request = (path: string, init?: RequestInit) => Promise<Response>;

/**
 * The header that requests with side effects must have. Pages of other origins cannot send this
 * header.
 */
export const REQUEST_HEADERS = { 'X-Gpumon': 'run' };

/** Returns the content of the server's response, or `null` and the reason for the failure. */
export async function readJsonResponse(
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
      why: trans.__('The server is not responding, or is too old for this request. Restart it.'),
    };
  }
}
