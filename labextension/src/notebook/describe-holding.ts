/** Descriptions of the GPU memory that a kernel holds, for questions and lists. */

import { DASH, memorySize, shareOf, type Sample } from '@gpumon/page/cells';
import type { Feed } from '@gpumon/page/feed';
import type { TranslationBundle } from '@jupyterlab/translation';

/** Returns the newest sample; `null` while the server sends nothing. */
export function newestSample({ store }: Feed): Sample | null {
  return store.phase.phase === 'open' ? store.sample : null;
}

/** Returns a sentence with the path, the GPUs and the memory of a kernel. */
export function describeHolding(
  trans: TranslationBundle,
  path: string,
  kernelId: string,
  sample: Sample | null,
): string {
  if (sample === null) {
    return trans.__('How much GPU memory %1 holds is unknown.', path);
  }
  const { gpus, bytes } = shareOf(sample, kernelId);
  return gpus.length === 0
    ? trans.__('%1 holds no GPU memory.', path)
    : trans.__(
        '%1 holds %2 of GPU %3.',
        path,
        bytes === null ? DASH : memorySize(bytes),
        gpus.join(', '),
      );
}
