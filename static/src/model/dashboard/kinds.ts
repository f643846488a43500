/** The charts that a dashboard can show, with the metrics that are their lines. */

import type { GpuSample } from '../../wire';
import { CHARTS } from '../../wire/fields';
import { GPU_METRICS, HOST_METRICS, type Metric } from '../metric';

export interface ChartKind<S = GpuSample> {
  /** As addresses and settings name it. */
  id: string;
  title: () => string;
  /** One line each; the first matters most. */
  metrics: readonly Metric<S>[];
}

/** What a comparison of GPUs shows unless other charts are chosen; with those of the machine, it fits a screen. */
export const COMPARED: readonly string[] = [
  'utilization.gpu_percent',
  'activity.sm_percent',
  'activity.tensor_percent',
  'activity.dram_bandwidth_percent',
  'memory.used_bytes',
  'power.draw_watts',
  'temperature.gpu_celsius',
  'clocks.sm_mhz',
  'pcie.rx_bytes_per_second',
  'pcie.tx_bytes_per_second',
  'nvlink.rx_bytes_per_second',
  'nvlink.tx_bytes_per_second',
];

export const GPU_CHARTS = kindsOf(GPU_METRICS);
export const HOST_CHARTS = kindsOf(HOST_METRICS);
export const CHART_IDS: readonly string[] = CHARTS.map(({ id }) => id);

/** The charts that have lines among these metrics. */
function kindsOf<S>(all: readonly Metric<S>[]): ChartKind<S>[] {
  const kinds = CHARTS.map(({ id, title }) => ({ id, title, metrics: all.filter(({ chart }) => chart === id) }));
  return kinds.filter(({ metrics }) => metrics.length > 0);
}
