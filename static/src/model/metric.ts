/** The fields of the catalog as metrics of charts. */

import { selectByIds } from '../lib/collections';
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
import { unavailableBytes } from './memory';
import { valueOf } from './reading';
import { UNITS, type Unit } from './unit';

/** The name by which the memory of all holders is requested from the history. */
export const HOLDER_MEMORY = 'processes.memory_bytes';
/** The name for all metrics of MIG devices. */
export const ALL_MIG_METRICS = 'mig';

/**
 * The colors of lines. Some colors have a fixed meaning; others only distinguish the lines of a
 * chart.
 */
export type Color = FieldColor | 'text';

/** A metric of the sample type `S`. */
export interface Metric<S = GpuSample> {
  /** The name in history frames, which is the path in the sample. */
  id: string;
  label: () => string;
  /**
   * The chart that shows the metric by default. The metric's line has the label `line` there.
   * `null` if the metric is only drawn on request.
   */
  chart: string | null;
  line: () => string;
  unit: Unit;
  color: Color;
  read: (sample: S) => Reading<number>;
  /** Returns the limit of the value in the same unit; `null` if the metric has no limit. */
  limit: ((sample: S) => Reading<number>) | null;
  /**
   * From this percentage of the limit on, a value counts as near the limit. `null` if the metric
   * has no such percentage.
   */
  near_percent: number | null;
}

/** The colors of metrics without a default chart, by unit. */
const COLORS_BY_UNIT: Partial<Record<FieldUnit, Color>> = {
  bytes: 'memory',
  watts: 'power',
  celsius: 'temperature',
  celsiusDifference: 'temperature',
};

const IN_MIG_CHARTS = ['mig.memory.used_bytes', 'mig.activity.sm_percent'];

export const ALL_GPU_METRICS: readonly Metric[] = GPU_FIELDS.map(metricOf);
export const ALL_HOST_METRICS: readonly Metric<HostSample>[] = HOST_FIELDS.map(metricOf);

export const GPU_METRICS: readonly Metric[] = ALL_GPU_METRICS.filter(isCharted);

/** The metrics of an overview. The server sends their history without a request. */
export const METRICS: readonly Metric[] = selectByIds(GPU_METRICS, OVERVIEW);

export const HOST_METRICS: readonly Metric<HostSample>[] = ALL_HOST_METRICS.filter(isCharted);

export const MIG_METRICS: readonly Metric<MigSample>[] = selectByIds(
  MIG_FIELDS.map(metricOf),
  IN_MIG_CHARTS,
);

/** Returns the limit of a metric, or `null` if it is unknown. */
export function limitOf<S>({ limit }: Metric<S>, sample: S | null): number | null {
  return sample === null || limit === null ? null : valueOf(limit(sample));
}

/**
 * Returns whether a value is near its limit. For the current memory, the unavailable memory in
 * `now` is compared instead of `value`. For past values, `now` is `null`, and the memory that the
 * GPU itself uses is compared.
 */
export function isNearLimit(
  { id, near_percent }: Metric,
  limit: number,
  value: number,
  now: GpuSample | null,
): boolean {
  const taken = now !== null && id === 'memory.used_bytes' ? unavailableBytes(now) : value;
  return taken !== null && taken * 100 >= limit * (near_percent ?? Infinity);
}

/**
 * Returns the limit that a chart marks with a line: the limit of the metric. For a temperature
 * without a limit, returns the slowdown temperature and its name.
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
  const drawn = chart ?? { name: null, line: label, color: COLORS_BY_UNIT[unit] ?? 'utilization' };
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
