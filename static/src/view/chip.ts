/** What a notebook has of the GPUs now, in a few letters, for a toolbar or a status bar. */

import { button, setAttribute, setShown, setText } from '../lib/dom';
import { memorySize, percent } from '../lib/format';
import { joined } from '../lib/text';
import { trans } from '../lib/translation';
import { shareOf } from '../model/kernel-share';
import type { Sample } from '../wire';

export class Chip {
  readonly element: HTMLButtonElement;

  constructor(onClick: () => void) {
    this.element = button(
      { class: 'gpumon-toolbar-chip', 'data-testid': 'gpumon-chip', hidden: '' },
      onClick,
    );
  }

  /** Shows what this kernel has; without a kernel, or where it holds no GPU, nothing. */
  update(sample: Sample | null, kernelId: string | null): void {
    const share = sample === null || kernelId === null ? null : shareOf(sample, kernelId);
    setShown(this.element, share !== null && share.gpus.length > 0);
    if (share === null || share.gpus.length === 0) {
      return;
    }
    const memory = share.bytes === null ? null : memorySize(share.bytes);
    const busy = share.sm_percent === null ? null : percent(share.sm_percent);
    setText(this.element, joined([trans.__('GPU'), memory, busy], ' '));
    setAttribute(this.element, 'title', title(share.gpus.join(', '), memory, busy));
  }
}

function title(where: string, memory: string | null, busy: string | null): string {
  if (memory === null) {
    return busy === null
      ? trans.__('This notebook is on GPU %1. Click for all GPUs.', where)
      : trans.__(
          'This notebook is on GPU %1, and its kernels ran %2 of the time. Click for all GPUs.',
          where,
          busy,
        );
  }
  return busy === null
    ? trans.__('This notebook holds %1 of GPU %2. Click for all GPUs.', memory, where)
    : trans.__(
        'This notebook holds %1 of GPU %2, its kernels ran %3 of the time. Click for all GPUs.',
        memory,
        where,
        busy,
      );
}
