/** Parts of the view that are loaded when somebody first needs them. */

import { h } from '../lib/dom';
import { trans } from '../lib/translation';

/** Waits for `import()`, and says where it fails what can be done: after an update the server no longer has the files. */
export async function part<T>(loading: Promise<T>): Promise<T> {
  try {
    return await loading;
  } catch (error) {
    console.error('gpumon: a part of it cannot be loaded', error);
    throw new Error(trans.__('This part of gpumon cannot be loaded. Reload the page.'), {
      cause: error,
    });
  }
}

/** Says in its place why such a part is missing. */
export function failedPart(error: unknown): HTMLElement {
  return h(
    'p',
    { class: 'gpumon-empty', role: 'alert' },
    error instanceof Error ? error.message : String(error),
  );
}
