/** The vendors' terms for features that several vendors have, and titles in these terms. */

import { findOwnProperty } from '../lib/collections';
import { lazyTexts, trans } from '../lib/translation';
import type { MigInstance, Vendor } from '../wire';
import { isUnified, type GpuState } from './gpu';

interface VendorWords {
  /** The name of the links between GPUs. */
  link: string;
  /** Returns text such as `2 GPU links` for the given number of links. */
  countLinks: (count: number) => string;
  /** The name of the parts into which a GPU can be divided. Programs use each part like a GPU. */
  partitions: string;
  /** Returns the name of one part of a GPU. */
  partition: (instance: MigInstance) => string;
  partitionsChanged: string;
  /**
   * Returns text with the given number of units, which are the parts of a GPU that execute kernels.
   */
  countUnits: (count: number) => string;
}

const COMMON = lazyTexts((): VendorWords => ({
  link: trans.__('GPU link'),
  countLinks: (count) => trans._n('%1 GPU link', '%1 GPU links', count),
  partitions: trans.__('Partitions'),
  partition: ({ gpu_instance }) => trans.__('partition %1', gpu_instance),
  partitionsChanged: trans.__('Partitions changed'),
  countUnits: (count) => trans._n('%1 core', '%1 cores', count),
}));

const BY_VENDOR = lazyTexts((): Record<Vendor, VendorWords> => ({
  nvidia: {
    link: 'NVLink',
    countLinks: (count) => trans._n('%1 NVLink', '%1 NVLinks', count),
    partitions: trans.__('MIG devices'),
    // The GPU instance precedes the compute instance, as in nvidia-smi.
    partition: ({ gpu_instance, compute_instance }) => `MIG ${gpu_instance}/${compute_instance}`,
    partitionsChanged: trans.__('MIG configuration changed'),
    countUnits: (count) => trans._n('%1 SM', '%1 SMs', count),
  },
  amd: {
    ...COMMON(),
    link: 'XGMI',
    countLinks: (count) => trans._n('%1 XGMI link', '%1 XGMI links', count),
    countUnits: (count) => trans._n('%1 CU', '%1 CUs', count),
  },
  intel: {
    ...COMMON(),
    link: trans.__('Xe Link'),
    countLinks: (count) => trans._n('%1 Xe Link', '%1 Xe Links', count),
  },
}));

/**
 * Returns the terms of the vendor of `gpus`. If there are several vendors, returns neutral terms.
 */
export function vendorWordsOf(...gpus: readonly { vendor: Vendor }[]): VendorWords {
  const [vendor, ...others] = new Set(gpus.map((gpu) => gpu.vendor));
  return others.length > 0
    ? COMMON()
    : (findOwnProperty(BY_VENDOR(), vendor ?? 'nvidia') ?? COMMON());
}

/**
 * Returns the title of a chart or reading: the term of these GPUs' vendor if it has its own, and
 * otherwise `title`.
 */
export function vendorSpecificTitle(id: string, title: string, gpus: readonly GpuState[]): string {
  const { link, partitions } = vendorWordsOf(...gpus);
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
