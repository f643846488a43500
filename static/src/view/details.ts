/** The further readings of a GPU, under its charts. */

import { h } from '../lib/dom';
import { celsius, mhz, percent } from '../lib/format';
import { absenceOf, valueOf } from '../model/reading';
import type { Activity, GpuSample, Reading } from '../wire';
import { ReadingValue, type Freshness } from './value';

interface Detail {
  id: string;
  label: string;
  read: (gpu: GpuSample) => Reading<number>;
  format: (value: number) => string;
  /** What belongs to it. */
  rest?: (gpu: GpuSample) => string;
}

/** A part of the activity, which is absent as a whole where the hardware does not count it. */
function active(part: keyof Activity): (gpu: GpuSample) => Reading<number> {
  return (gpu) => valueOf(gpu.activity)?.[part] ?? absenceOf(gpu.activity) ?? { absent: 'unknown' };
}

const DETAILS: readonly Detail[] = [
  { id: 'activity.sm_percent', label: 'SM active', read: active('sm_percent'), format: percent },
  { id: 'activity.tensor_percent', label: 'Tensor', read: active('tensor_percent'), format: percent },
  {
    id: 'activity.dram_bandwidth_percent',
    label: 'DRAM bandw.',
    read: active('dram_bandwidth_percent'),
    format: percent,
  },
  { id: 'clocks.sm_mhz', label: 'SM clock', read: (gpu) => gpu.clocks.sm_mhz, format: mhz },
  { id: 'clocks.memory_mhz', label: 'Memory clock', read: (gpu) => gpu.clocks.memory_mhz, format: mhz },
  {
    id: 'utilization.memory_percent',
    label: 'Memory busy',
    read: (gpu) => gpu.utilization.memory_percent,
    format: percent,
  },
  {
    id: 'temperature.memory_celsius',
    label: 'Memory temp.',
    read: (gpu) => gpu.temperature.memory_celsius,
    format: celsius,
  },
  {
    id: 'utilization.encoder_percent',
    label: 'Encoder',
    read: (gpu) => gpu.utilization.encoder_percent,
    format: percent,
  },
  {
    id: 'utilization.decoder_percent',
    label: 'Decoder',
    read: (gpu) => gpu.utilization.decoder_percent,
    format: percent,
  },
  {
    id: 'performance_state',
    label: 'P-state',
    read: (gpu) => gpu.performance_state,
    format: (value) => `P${String(value)}`,
  },
  {
    id: 'pcie.generation',
    label: 'PCIe',
    read: (gpu) => gpu.pcie.generation,
    format: (value) => `gen ${String(value)}`,
    rest: (gpu) => {
      const lanes = valueOf(gpu.pcie.width);
      return lanes === null ? '' : `×${String(lanes)}`;
    },
  },
];

export class Details {
  readonly element = h('dl', { class: 'gpumon-details' });
  private readonly values = DETAILS.map((detail) => new ReadingValue(detail.id));

  constructor() {
    DETAILS.forEach((detail, i) => {
      const value = this.values[i];
      if (value !== undefined) {
        this.element.append(h('div', {}, h('dt', {}, detail.label), h('dd', {}, value.element)));
      }
    });
  }

  update(gpu: GpuSample | null, freshness: Freshness): void {
    DETAILS.forEach((detail, i) => {
      const rest = gpu === null ? '' : (detail.rest?.(gpu) ?? '');
      this.values[i]?.update(gpu === null ? null : detail.read(gpu), detail.format, freshness, rest);
    });
  }
}
