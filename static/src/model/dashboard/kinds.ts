/** The charts that a dashboard can show, with the metrics that are their lines. */

import { nearest } from '../../lib/nearest';
import { inEnglish, table, trans } from '../../lib/translation';
import type { GpuSample, HostSample } from '../../wire';
import { CHARTS } from '../../wire/fields';
import {
  ALL_GPU_METRICS,
  ALL_HOST_METRICS,
  GPU_METRICS,
  HOST_METRICS,
  type Metric,
} from '../metric';

export interface ChartKind<S = GpuSample> {
  /** As addresses and settings name it. */
  id: string;
  title: () => string;
  /** One line each; the first matters most. */
  metrics: readonly Metric<S>[];
}

/**
 * What a comparison of GPUs shows unless other charts are chosen; with those of the machine, it
 * fits a screen.
 */
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
/** Each reading has a chart of its own, on request. */
const GPU_READINGS = ALL_GPU_METRICS.map(chartOf);
const HOST_READINGS = ALL_HOST_METRICS.map(chartOf);

/** What can be chosen, in groups. */
export interface ChartGroup {
  title: string;
  charts: readonly Pick<ChartKind, 'id' | 'title'>[];
}

export function chartGroups(): ChartGroup[] {
  return [
    { title: trans.__('Charts'), charts: CHARTS },
    { title: trans.__('GPU readings'), charts: GPU_READINGS },
    { title: trans.__('Machine readings'), charts: HOST_READINGS },
  ];
}

const ALL: ChartGroup['charts'] = [...CHARTS, ...GPU_READINGS, ...HOST_READINGS];

export const CHART_IDS: readonly string[] = ALL.map(({ id }) => id);

/**
 * The id of each chart by its id and its names, in lower case; a name that several have is that of
 * the first.
 */
const BY_NAME = table((): ReadonlyMap<string, string> => {
  const titles = ALL.map(({ id, title }) => [title(), id] as const);
  const englishTitles = inEnglish(() => ALL.map(({ id, title }) => [title(), id] as const));
  const named = [...CHART_IDS.map((id) => [id, id] as const), ...titles, ...englishTitles];
  return new Map(named.reverse().map(([name, id]) => [name.toLowerCase(), id]));
});

/**
 * The chart that somebody calls by its id or by its name, in English or as it is shown; `null`
 * where there is none.
 */
export function chartCalled(name: string): string | null {
  return BY_NAME().get(name.trim().toLowerCase()) ?? null;
}

/** The name of the chart whose name or id is spelled most like this one. */
export function nearestChart(name: string): string {
  const id = chartCalled(nearest(name.trim().toLowerCase(), [...BY_NAME().keys()]) ?? '');
  const title = ALL.find((chart) => chart.id === id)?.title() ?? '';
  return chartCalled(title) === id ? title : (id ?? '');
}

/** Those of `ids` that are of GPUs, in their order. */
export function gpuCharts(ids: readonly string[]): ChartKind[] {
  return found([...GPU_CHARTS, ...GPU_READINGS], ids);
}

/** Those of `ids` that are of the machine, in their order. */
export function hostCharts(ids: readonly string[]): ChartKind<HostSample>[] {
  return found([...HOST_CHARTS, ...HOST_READINGS], ids);
}

/** Readings that are drawn only where a chart of them was asked for. */
export function uncharted(ids: readonly string[]): string[] {
  const all = [...ALL_GPU_METRICS, ...ALL_HOST_METRICS];
  return all.filter(({ id, chart }) => chart === null && ids.includes(id)).map(({ id }) => id);
}

/** The charts that have lines among these metrics. */
function kindsOf<S>(all: readonly Metric<S>[]): ChartKind<S>[] {
  const kinds = CHARTS.map(({ id, title }) => ({
    id,
    title,
    metrics: all.filter(({ chart }) => chart === id),
  }));
  return kinds.filter(({ metrics }) => metrics.length > 0);
}

function chartOf<S>(metric: Metric<S>): ChartKind<S> {
  return { id: metric.id, title: metric.label, metrics: [metric] };
}

function found<S>(kinds: readonly ChartKind<S>[], ids: readonly string[]): ChartKind<S>[] {
  return ids.flatMap((id) => kinds.filter((kind) => kind.id === id));
}
