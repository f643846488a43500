/** The order of GPUs in a list: the driver's order, or by a value. */

import { levelRank } from './condition';
import type { Level } from './describe';
import type { GpuState } from './gpu';
import { unavailableBytes } from './memory';
import { valueOf } from './reading';

/** The columns by which a list of GPUs can be sorted. */
export const SORT_KEYS = ['index', 'use', 'mem', 'temp', 'power', 'state'] as const;
export type SortKey = (typeof SORT_KEYS)[number];

/** The time for which an order by values is kept, in milliseconds. */
const KEPT_MS = 5000;

export interface Order {
  by: SortKey;
  direction: 'ascending' | 'descending';
}

/** Parses a stored order such as `mem:descending`. `null` stands for the driver's order. */
export function parseOrder(text: string | null): Order | null {
  // Version 0.2 stored `worst` for the order by state.
  const [name, direction] = (text === 'worst' ? 'state' : (text ?? '')).split(':');
  const by = SORT_KEYS.find((key) => key === name);
  return by === undefined
    ? null
    : { by, direction: direction === 'ascending' ? direction : 'descending' };
}

export function formatOrder(order: Order | null): string | null {
  return order === null ? null : `${order.by}:${order.direction}`;
}

/**
 * Returns the order after a click on a column. Successive clicks select the descending order, the
 * ascending order, and the driver's order.
 */
export function nextOrder(order: Order | null, by: SortKey): Order | null {
  if (order?.by !== by) {
    return { by, direction: 'descending' };
  }
  return order.direction === 'descending' && by !== 'index' ? { by, direction: 'ascending' } : null;
}

/** Sorts GPUs. An order by values is kept for a while, because values change with each sample. */
export class GpuSorter {
  private last: { key: string; indices: readonly number[] } = { key: '', indices: [] };

  /** Returns the GPUs in order. Equal GPUs are in the driver's order. */
  sort(
    gpus: readonly GpuState[],
    order: Order | null,
    levelOf: (gpu: GpuState) => Level,
    now_ms: number,
  ): readonly GpuState[] {
    if (order === null) {
      return gpus;
    }
    const turn = order.by === 'state' ? now_ms : Math.floor(now_ms / KEPT_MS);
    const key = [turn, formatOrder(order), ...gpus.map(({ index }) => index)].join();
    if (key !== this.last.key) {
      this.last = { key, indices: sortGpus(gpus, order, levelOf).map(({ index }) => index) };
    }
    const byIndex = new Map(gpus.map((gpu) => [gpu.index, gpu]));
    return this.last.indices.flatMap((index) => byIndex.get(index) ?? []);
  }
}

/** Sorts GPUs by a value. GPUs without a value come last. */
function sortGpus(
  gpus: readonly GpuState[],
  { by, direction }: Order,
  levelOf: (gpu: GpuState) => Level,
): GpuState[] {
  const sign = direction === 'ascending' ? 1 : -1;
  return gpus
    .map((gpu) => [readSortValue(gpu, by, levelOf), gpu] as const)
    .sort(([a], [b]) =>
      a === null || b === null ? Number(a === null) - Number(b === null) : sign * (a - b),
    )
    .map(([, gpu]) => gpu);
}

function readSortValue(
  gpu: GpuState,
  by: SortKey,
  levelOf: (gpu: GpuState) => Level,
): number | null {
  const { now } = gpu;
  switch (by) {
    case 'index':
      return gpu.index;
    case 'state':
      return -levelRank(levelOf(gpu));
    case 'use':
      return valueOf(now?.utilization.gpu_percent);
    case 'mem':
      return now && unavailableBytes(now);
    case 'temp':
      return valueOf(now?.temperature.gpu_celsius);
    case 'power':
      return valueOf(now?.power.draw_watts);
  }
}
