/** What a notebook has of the GPUs now, in a few letters, for a toolbar or a status bar. */

import { h, setAttribute, setShown, setText } from '../lib/dom';
import { memorySize, percent } from '../lib/format';
import { shareOf } from '../model/kernel-share';
import type { Sample } from '../wire';

export class Chip {
  readonly element = h('button', { class: 'gpumon-chip', type: 'button', 'data-testid': 'gpumon-chip', hidden: '' });

  constructor(onClick: () => void) {
    this.element.addEventListener('click', onClick);
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
    setText(this.element, ['GPU', memory, busy].filter((part) => part !== null).join(' '));
    const where = `GPU ${share.gpus.map(String).join(', ')}`;
    const words = [
      memory === null ? null : `holds ${memory} of ${where}`,
      busy === null ? null : `its kernels ran ${busy} of the time`,
    ];
    const said = words.filter((part) => part !== null).join(', ');
    setAttribute(this.element, 'title', `This notebook ${said || `is on ${where}`}. Click for all GPUs.`);
  }
}
