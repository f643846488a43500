/** The charts that a dashboard can show, with the metrics that are their lines. */

import { selectByIds } from '../../lib/collections';
import { callInEnglish, lazyTexts, trans } from '../../lib/translation';
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
  /** The ID in URLs and settings. */
  id: string;
  title: () => string;
  /** The metrics of the chart, each drawn as one line. The first metric is the most important. */
  metrics: readonly Metric<S>[];
}

/**
 * The default charts for the comparison of GPUs. They fit on one screen together with the machine's
 * charts.
 */
export const COMPARISON_CHARTS: readonly string[] = [
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

export const GPU_CHARTS = chartsWithMetrics(GPU_METRICS);
export const HOST_CHARTS = chartsWithMetrics(HOST_METRICS);
/**
 * The chart of the causes that limit a GPU. Its lines are the parts of a whole, so they are
 * stacked, and each GPU has its own chart.
 */
export const LIMITS_CHART = 'limits';
/** The charts of single metrics, which a user can add. */
const GPU_METRIC_CHARTS = ALL_GPU_METRICS.map(chartOf);
const HOST_METRIC_CHARTS = ALL_HOST_METRICS.map(chartOf);

/** A group of charts in the chart menu. */
export interface ChartGroup {
  title: string;
  charts: readonly Pick<ChartKind, 'id' | 'title'>[];
}

export function chartGroups(): ChartGroup[] {
  return [
    { title: trans.__('Charts'), charts: CHARTS },
    { title: trans.__('GPU readings'), charts: GPU_METRIC_CHARTS },
    { title: trans.__('Machine readings'), charts: HOST_METRIC_CHARTS },
  ];
}

const ALL_CHARTS: ChartGroup['charts'] = [...CHARTS, ...GPU_METRIC_CHARTS, ...HOST_METRIC_CHARTS];

export const CHART_IDS: readonly string[] = ALL_CHARTS.map(({ id }) => id);

/**
 * Maps the ID and the names of each chart, in lowercase, to the chart's ID. If several charts have
 * the same name, the first one is used.
 */
const IDS_BY_NAME = lazyTexts((): ReadonlyMap<string, string> => {
  const titles = (): [name: string, id: string][] =>
    ALL_CHARTS.map(({ id, title }) => [title(), id]);
  const named = [
    ...CHART_IDS.map((id) => [id, id] as const),
    ...titles(),
    ...callInEnglish(titles),
  ];
  return new Map(named.reverse().map(([name, id]) => [name.toLowerCase(), id]));
});

/**
 * Returns the ID of the chart with this ID or name, in English or in the user's language, or `null`
 * if there is none.
 */
export function findChartId(name: string): string | null {
  return IDS_BY_NAME().get(name.trim().toLowerCase()) ?? null;
}

/** Returns the name of the chart whose name or ID is most similar to this name. */
export function nearestChartName(name: string): string {
  const id = findChartId(
    findNearestWord(name.trim().toLowerCase(), [...IDS_BY_NAME().keys()]) ?? '',
  );
  const title = ALL_CHARTS.find((chart) => chart.id === id)?.title() ?? '';
  return findChartId(title) === id ? title : (id ?? '');
}

/** Returns the GPU charts with these IDs, in the order of `ids`. */
export function gpuCharts(ids: readonly string[]): ChartKind[] {
  return selectByIds([...GPU_CHARTS, ...GPU_METRIC_CHARTS], ids);
}

/** Returns the machine's charts with these IDs, in the order of `ids`. */
export function hostCharts(ids: readonly string[]): ChartKind<HostSample>[] {
  return selectByIds([...HOST_CHARTS, ...HOST_METRIC_CHARTS], ids);
}

/**
 * Returns the metrics of the charts `ids` that are requested only for these charts: metrics that
 * are not part of any default chart, and the many metrics of the causes that limit a GPU.
 */
export function metricsOnRequest(ids: readonly string[]): string[] {
  const all = [...ALL_GPU_METRICS, ...ALL_HOST_METRICS];
  const isShown = ({ id, chart }: Pick<Metric, 'id' | 'chart'>): boolean =>
    ids.includes(id) || (chart !== null && ids.includes(chart));
  return all.filter((metric) => isOnRequest(metric) && isShown(metric)).map(({ id }) => id);
}

/** Returns whether a metric is requested only for the charts that show it. */
export function isOnRequest({ chart }: Pick<Metric, 'chart'>): boolean {
  return chart === null || chart === LIMITS_CHART;
}

/**
 * Returns the charts to which at least one of the metrics in `all` belongs. Each chart has only the
 * metrics in `all`.
 */
function chartsWithMetrics<S>(all: readonly Metric<S>[]): ChartKind<S>[] {
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

/**
 * Returns the word that differs from `word` by the fewest insertions, deletions and replacements,
 * or `null` if `words` is empty.
 */
export function findNearestWord(word: string, words: readonly string[]): string | null {
  let best: { word: string; distance: number } | null = null;
  for (const other of words) {
    const distance = editDistance(word, other);
    if (best === null || distance < best.distance) {
      best = { word: other, distance };
    }
  }
  return best?.word ?? null;
}

/** Returns the Levenshtein distance, computed one table row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
