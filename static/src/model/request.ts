/** HTTP requests to the server, and the reasons for their failure. */

import { plainText } from '../lib/text';
import { trans } from '../lib/translation';

/** Sends an HTTP request to the server. `path` is a path such as `api/v1/runs`. */
export type Request = (path: string, init?: RequestInit) => Promise<Response>;

/**
 * The header that requests with side effects must have. Pages of other origins cannot send this
 * header.
 */
const REQUEST_HEADERS = { 'X-Gpumon': 'run' };

/** Returns the options of a request with side effects. `body` is sent as JSON. */
export function makeRequestInit(method: 'POST' | 'DELETE', body?: object): RequestInit {
  return { method, headers: REQUEST_HEADERS, ...(body && { body: JSON.stringify(body) }) };
}

/** Returns the content of the server's response, or `null` and the reason for the failure. */
export async function readJsonResponse(
  response: ReturnType<Request>,
): Promise<{ json: unknown; why: string | null }> {
  try {
    const answer = await response;
    if (answer.ok) {
      return { json: await answer.json(), why: null };
    }
    return { json: null, why: await readFailureReason(answer) };
  } catch {
    return {
      json: null,
      why: trans.__('The server is not responding, or is too old for this request. Restart it.'),
    };
  }
}

/** Returns the reason in the body of a failed response, or its status code if the body is empty. */
export async function readFailureReason(response: Response): Promise<string> {
  return plainText((await response.text()).trim()) || `HTTP ${response.status}`;
}
