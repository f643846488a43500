import { createElement, setAttribute, setShown, setText } from '../lib/dom';
import { formatMemorySize, formatPercent } from '../lib/format';
import { joinParts } from '../lib/text';
import { trans } from '../lib/translation';
import { computeKernelShare } from '../model/kernel-share';
import type { Sample } from '../wire';

/**
 * The GPU use of a notebook in a compact form, for a toolbar or the status bar. It does not use
 * Preact, because notebooks load it before they load Preact.
 */
export class Chip {
  readonly element = createElement('button', {
    type: 'button',
    class: 'gpumon-toolbar-chip',
    'data-testid': 'gpumon-chip',
    hidden: '',
  });

  constructor(onClick: () => void) {
    this.element.addEventListener('click', onClick);
  }

  /**
   * Shows the use of a kernel. The chip is hidden if there is no kernel or the kernel uses no GPU.
   */
  update(sample: Sample | null, kernelId: string | null): void {
    const share =
      sample === null || kernelId === null ? null : computeKernelShare(sample, kernelId);
    setShown(this.element, share !== null && share.gpus.length > 0);
    if (share === null || share.gpus.length === 0) {
      return;
    }
    const memory = share.bytes === null ? null : formatMemorySize(share.bytes);
    const busy = share.sm_percent === null ? null : formatPercent(share.sm_percent);
    setText(this.element, joinParts([trans.__('GPU'), memory, busy], ' '));
    setAttribute(this.element, 'title', titleOf(share.gpus.join(', '), memory, busy));
  }
}

function titleOf(gpus: string, memory: string | null, busy: string | null): string {
  return joinParts(
    [
      memory === null
        ? trans.__('This notebook uses GPU %1.', gpus)
        : trans.__('This notebook holds %1 of GPU %2.', memory, gpus),
      busy === null ? null : trans.__('Its kernels ran %1 of the time.', busy),
      trans.__('Click for all GPUs.'),
    ],
    ' ',
  );
}
