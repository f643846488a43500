/** Titles of readings and charts in the vendor's terms. */

import { trans } from '../lib/translation';
import type { GpuState } from './gpu';
import { isUnified } from './memory';
import { wordsOf } from './vendor-words';

/**
 * Returns the title of a chart or reading. It is `title` unless the vendor of these GPUs uses
 * another term.
 */
export function gpuTitle(id: string, title: string, gpus: readonly GpuState[]): string {
  const { link, partitions } = wordsOf(...gpus);
  switch (id) {
    case 'nvlink':
      return link;
    case 'nvlink.rx_bytes_per_second':
      return trans.__('%1 RX', link);
    case 'nvlink.tx_bytes_per_second':
      return trans.__('%1 TX', link);
    case 'mig':
      return partitions;
    case 'memory':
    case 'memory.used_bytes':
      return gpus.length > 0 && gpus.every(({ now }) => isUnified(now))
        ? trans.__('Unified memory')
        : title;
    default:
      return title;
  }
}
