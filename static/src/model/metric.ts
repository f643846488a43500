/** The fields of the catalogue as the page draws them over time. */

import { trans } from '../lib/translation';
import type { GpuSample, HostSample, MigSample, Reading } from '../wire';
import {
  GPU_FIELDS,
  HOST_FIELDS,
  MIG_FIELDS,
  OVERVIEW,
  type Field,
  type FieldColor,
  type FieldUnit,
} from '../wire/fields';
import type { GpuState } from './gpu';
import { takenBytes } from './memory';
import { valueOf } from './reading';
import { UNITS, type Unit } from './unit';

/** Stands for what each holder has of a GPU's memory, as in requests for history. */
export const HELD = 'processes.memory_bytes';
/** Stands for the metrics of MIG devices. */
export const MIG = 'mig';

/** The colors of lines: one for each meaning, and those that tell lines of one chart apart. */
export type Color = FieldColor | 'text';

/** One number of what `S` is a sample of. */
export interface Metric<S = GpuSample> {
  /** Its name in history frames: the path in the sample. */
  id: string;
  label: () => string;
  /**
   * The chart that it is a line of, and what it is called there; `null` where it has one only on
   * request.
   */
  chart: string | null;
  line: () => string;
  unit: Unit;
  color: Color;
  read: (sample: S) => Reading<number>;
  /** What the value is out of, in the same unit; `null` where that is not read. */
  limit: ((sample: S) => Reading<number>) | null;
  /** From which percentage of its limit on it is near it; `null` where that says nothing. */
  near_percent: number | null;
}

/** The colors of what has no chart by itself. */
const COLORS: Partial<Record<FieldUnit, Color>> = {
  bytes: 'memory',
  watts: 'power',
  celsius: 'temperature',
  celsiusDifference: 'temperature',
};

const IN_MIG_CHARTS = ['mig.memory.used_bytes', 'mig.activity.sm_percent'];

export const ALL_GPU_METRICS: readonly Metric[] = GPU_FIELDS.map(metricOf);
export const ALL_HOST_METRICS: readonly Metric<HostSample>[] = HOST_FIELDS.map(metricOf);

export const GPU_METRICS: readonly Metric[] = ALL_GPU_METRICS.filter(isCharted);

/** What an overview shows of each GPU; the server tells its history unasked. */
export const METRICS: readonly Metric[] = chosen(GPU_METRICS, OVERVIEW);

export const HOST_METRICS: readonly Metric<HostSample>[] = ALL_HOST_METRICS.filter(isCharted);

export const MIG_METRICS: readonly Metric<MigSample>[] = chosen(
  MIG_FIELDS.map(metricOf),
  IN_MIG_CHARTS,
);

/** What the value of a metric is out of; `null` where that is not known. */
export function limitOf<S>({ limit }: Metric<S>, sample: S | null): number | null {
  return sample === null || limit === null ? null : valueOf(limit(sample));
}

/**
 * Returns `true` if a value is so near its limit that people should know. For memory, everything
 * counts that is not available in `now`; of the past (`null`), only the GPU's own use is known.
 */
export function isNearLimit(
  { id, near_percent }: Metric,
  limit: number,
  value: number,
  now: GpuSample | null,
): boolean {
  const taken = now !== null && id === 'memory.used_bytes' ? takenBytes(now) : value;
  return taken !== null && taken * 100 >= limit * (near_percent ?? Infinity);
}

/**
 * What a GPU's values should stay below, as a line across their chart; its name where the number
 * does not tell.
 */
export function limitLineOf(
  metric: Metric,
  gpu: GpuState,
): { value: number; name?: string } | null {
  const limit = limitOf(metric, gpu.now);
  if (limit !== null) {
    return { value: limit };
  }
  const slowdown =
    metric.id === 'temperature.gpu_celsius' ? valueOf(gpu.board.thresholds.slowdown_celsius) : null;
  return slowdown === null ? null : { value: slowdown, name: trans.__('slowdown') };
}

function metricOf<S>({ id, label, unit, read, limit, load, chart }: Field<S>): Metric<S> {
  const drawn = chart ?? { name: null, line: label, color: COLORS[unit] ?? 'utilization' };
  return {
    id,
    label,
    chart: drawn.name,
    line: drawn.line,
    unit: UNITS[unit],
    color: drawn.color,
    read,
    limit: limit ?? null,
    near_percent: load?.[1] ?? null,
  };
}

function isCharted({ chart }: Pick<Metric, 'chart'>): boolean {
  return chart !== null;
}

/** Those of these ids, in their order. */
function chosen<S>(all: readonly Metric<S>[], ids: readonly string[]): Metric<S>[] {
  return ids.flatMap((id) => all.filter((metric) => metric.id === id));
}
