/** Descriptions of a dashboard's charts and their lines, grouped into sections. */

import type { ChartLine } from '../../chart/content';
import { plainText } from '../../lib/text';
import { trans } from '../../lib/translation';
import type { HostSample, Reading, Sample } from '../../wire';
import { seriesKey, type GpuState } from '../gpu';
import { holderSeriesKey, type HolderRow } from '../holders';
import {
  GPU_METRICS,
  HOLDER_MEMORY,
  HOST_METRICS,
  limitLineOf,
  limitOf,
  ALL_MIG_METRICS,
  MIG_METRICS,
  type Color,
  type Metric,
} from '../metric';
import { vendorSpecificTitle } from '../vendor-words';
import { migRows } from '../mig';
import { absenceOf, valueOf } from '../reading';
import { PERCENT, type Unit } from '../unit';
import { displayedChartIds, hasSeparateGpuCharts, type DashboardState } from './state';
import { gpuCharts, hostCharts, isOnRequest, LIMITS_CHART, type ChartKind } from './kinds';

export interface PlotLine {
  /**
   * The ID of the GPU, metric or holder. It is the same in every chart, so a click in one legend
   * affects all charts.
   */
  id: string;
  label: string;
  /** The full name of the line, which is used where the chart's title is not visible. */
  name?: string;
  color: Color;
  series: string;
  /** The field of the catalog that the line shows. */
  field: string;
  /** The current reading; `null` before the first sample. */
  now: Reading<number> | null;
  /** Whether `now` is the last known value of a GPU that does not respond. */
  isStale?: boolean;
  /** The name of the line's series in the driver's traces, if the traces contain the line. */
  trace?: string;
  /** Whether `color` is the color of a GPU. */
  isGpu?: boolean;
  /** If the line is computed from other lines, such as a median: its values. */
  own?: Pick<ChartLine, 'values' | 'extremes'>;
}

export interface Plot {
  key: string;
  /** The ID of the chart. Charts of the same kind have the same ID for every GPU. */
  id: string;
  /** The ID by which a user selects the chart. The charts of all MIG devices share one ID. */
  chart: string;
  title: string;
  unit: Unit;
  lines: readonly PlotLine[];
  /** The lines that are stacked on top of each other. */
  stack: readonly PlotLine[];
  /** The upper limit of the values; `null` if it is unknown. */
  limit: number | null;
  limitName?: string;
  /** The GPU of the chart; `null` for the machine or for several GPUs. */
  gpu: number | null;
}

/** A group of related charts. */
export interface Section {
  key: string;
  /** The GPU of the charts; `null` for all GPUs together or for the machine. */
  gpu: GpuState | null;
  title: string;
  plots: readonly Plot[];
  /** The names of charts that are not shown, because the board or driver does not support them. */
  missing: readonly string[];
}

/** A holder of GPU memory, now or in the displayed time range. */
export type Holder = Pick<HolderRow, 'holder' | 'name' | 'slot' | 'memory_bytes'>;

export interface PlotsInput {
  state: DashboardState;
  gpus: readonly GpuState[];
  sample: Sample | null;
  /** The holders by GPU index. */
  holders: ReadonlyMap<number, readonly Holder[]>;
}

/** The metrics that a dashboard requests for every selection of charts, named as in the history. */
export const DRAWN_METRICS: readonly string[] = [
  ...[...GPU_METRICS, ...HOST_METRICS].filter((metric) => !isOnRequest(metric)).map(({ id }) => id),
  HOLDER_MEMORY,
  ALL_MIG_METRICS,
];

/** Returns the metrics of all lines in these sections, named as in the history. */
export function metricsOf(sections: readonly Section[]): string[] {
  const lines = sections.flatMap(({ plots }) =>
    plots.flatMap((plot) => [...plot.lines, ...plot.stack]),
  );
  return [...new Set(lines.map(({ field }) => field))].sort();
}

/** Returns the sections with only those stacked lines that have values. */
export function keepStackedLinesWithValues(
  sections: readonly Section[],
  isKnown: (series: string) => boolean,
): Section[] {
  const known = (plot: Plot): Plot =>
    plot.stack.length === 0
      ? plot
      : { ...plot, stack: plot.stack.filter(({ series }) => isKnown(series)) };
  return sections.map((section) => ({ ...section, plots: section.plots.map(known) }));
}

/** The key of the machine's section. */
export const HOST = 'host';

/** Returns the sections of a dashboard, from top to bottom. */
export function sectionsOf(input: PlotsInput): Section[] {
  const { state, gpus, sample } = input;
  const chosen = gpus.filter(({ index }) => state.gpus?.includes(index) ?? true);
  const ids = displayedChartIds(state, chosen.length);
  const kinds = gpuCharts(ids);
  const withMig = ids.includes(ALL_MIG_METRICS);
  const sections = hasSeparateGpuCharts(state, chosen.length)
    ? chosen.map((gpu) => gpuSection(gpu, kinds, withMig, input))
    : [comparisonSection(chosen, kinds, input)];
  const machine = hostCharts(ids).map((kind) => hostPlot(kind, sample));
  const host: Section = {
    key: HOST,
    gpu: null,
    title: trans.__('Machine'),
    plots: machine,
    missing: [],
  };
  return [...sections, host].filter(({ plots, missing }) => plots.length + missing.length > 0);
}

function gpuSection(
  gpu: GpuState,
  kinds: readonly ChartKind[],
  withMig: boolean,
  input: PlotsInput,
): Section {
  const able = kinds.filter(({ metrics }) => metrics.some((metric) => isSupported(gpu, metric)));
  const plots = able
    .filter(({ metrics }) => metrics.some((metric) => shouldDrawMetric(metric, [gpu], input)))
    .map((kind) => gpuPlot(gpu, kind, input.holders.get(gpu.index) ?? []));
  const missing = kinds
    .filter((kind) => !able.includes(kind))
    .map((kind) => vendorSpecificTitle(kind.id, kind.title(), [gpu]));
  const title = `${gpu.index} ${plainText(gpu.name)}`;
  const mig = withMig ? migPlots(gpu) : [];
  return { key: `gpu ${gpu.index}`, gpu, title, plots: [...plots, ...mig], missing };
}

function gpuPlot(
  gpu: GpuState,
  { id, title, metrics }: ChartKind,
  holders: readonly Holder[],
): Plot {
  const able = metrics.filter((metric) => isSupported(gpu, metric));
  const lines = able.map((metric): PlotLine => {
    // The total is drawn above the stacked parts. It has a neutral color, because the parts may
    // need all other colors.
    const color = id === 'memory' ? 'text' : metric.color;
    return {
      id: metric.id,
      label: metric.line(),
      color,
      series: seriesKey(gpu, metric.id),
      field: metric.id,
      now: readMetric(gpu, metric),
      ...(metric.id === 'power.instant_watts' && { trace: seriesKey(gpu, 'power_watts') }),
    };
  });
  const parts = (id === 'memory' ? holders : []).map(
    ({ holder, name, slot, memory_bytes }): PlotLine => ({
      id: holder,
      label: plainText(name),
      color: slot,
      series: holderSeriesKey(gpu, holder),
      field: 'memory.used_bytes',
      now: memory_bytes,
    }),
  );
  const [first] = able;
  const limit = highestLimit(first ? [limitLineOf(first, gpu)] : []);
  return {
    key: `gpu ${gpu.index} ${id}`,
    id,
    chart: id,
    title: vendorSpecificTitle(id, title(), [gpu]),
    unit: first?.unit ?? PERCENT,
    ...(id === LIMITS_CHART ? { lines: [], stack: lines } : { lines, stack: parts }),
    ...limit,
    gpu: gpu.index,
  };
}

/**
 * Returns a section with one chart per metric and one line per GPU. Only the chart of limits is
 * separate for each GPU.
 */
function comparisonSection(
  gpus: readonly GpuState[],
  kinds: readonly ChartKind[],
  input: PlotsInput,
): Section {
  const plots = kinds.flatMap((kind) =>
    kind.id === LIMITS_CHART
      ? limitPlots(gpus, kind, input)
      : kind.metrics.flatMap((metric) => comparisonPlots(gpus, metric, input)),
  );
  return {
    key: 'all',
    gpu: null,
    title: trans._n('%1 GPU', '%1 GPUs', gpus.length),
    plots,
    missing: [],
  };
}

/** Returns the chart that compares a metric of GPUs, unless the metric is not drawn. */
function comparisonPlots(gpus: readonly GpuState[], metric: Metric, input: PlotsInput): Plot[] {
  const able = gpus.filter((gpu) => isSupported(gpu, metric));
  const lines = able.map((gpu): PlotLine => ({
    id: String(gpu.index),
    label: String(gpu.index),
    name: trans.__('GPU %1', gpu.index),
    color: gpu.index,
    isGpu: true,
    series: seriesKey(gpu, metric.id),
    field: metric.id,
    now: readMetric(gpu, metric),
    isStale: !isResponding(gpu),
  }));
  const limit = highestLimit(able.map((gpu) => limitLineOf(metric, gpu)));
  const { id, label, unit } = metric;
  return !shouldDrawMetric(metric, able, input)
    ? []
    : [
        {
          key: `all ${id}`,
          id,
          chart: id,
          title: vendorSpecificTitle(id, label(), able),
          unit,
          lines,
          stack: [],
          ...limit,
          gpu: null,
        },
      ];
}

/** Returns a chart for each GPU that reports what limits it. */
function limitPlots(gpus: readonly GpuState[], kind: ChartKind, input: PlotsInput): Plot[] {
  const able = gpus.filter((gpu) =>
    kind.metrics.some(
      (metric) => isSupported(gpu, metric) && shouldDrawMetric(metric, [gpu], input),
    ),
  );
  return able.map((gpu) => {
    const plot = gpuPlot(gpu, kind, []);
    return { ...plot, title: trans.__('GPU %1: %2', gpu.index, plot.title) };
  });
}

/** Returns the highest of the limits. */
function highestLimit(
  limits: readonly ReturnType<typeof limitLineOf>[],
): Pick<Plot, 'limit' | 'limitName'> {
  const [highest] = limits.filter((limit) => limit !== null).sort((a, b) => b.value - a.value);
  return {
    limit: highest?.value ?? null,
    ...(highest?.name !== undefined && { limitName: highest.name }),
  };
}

function migPlots(gpu: GpuState): Plot[] {
  const rows = migRows(gpu);
  const partitions = vendorSpecificTitle(ALL_MIG_METRICS, '', [gpu]);
  return MIG_METRICS.flatMap((metric, i) => {
    const lines = rows.map((row, slot): PlotLine => ({
      id: row.uuid,
      label: `${row.name} ${row.instance.split(' · ')[0] ?? ''}`.trim(),
      color: slot,
      series: seriesKey({ index: -1, uuid: row.uuid }, metric.id),
      field: metric.id,
      now: i === 0 ? row.used_bytes : row.sm_percent,
    }));
    const able = lines.filter(({ now }) => absenceOf(now) === null);
    const stack = i === 0 ? able : [];
    return able.length === 0
      ? []
      : [
          {
            key: `gpu ${gpu.index} ${metric.id}`,
            id: metric.id,
            chart: ALL_MIG_METRICS,
            title: `${partitions}: ${metric.label()}`,
            unit: metric.unit,
            lines: i === 0 ? [] : able,
            stack,
            limit:
              i === 0 ? rows.reduce((sum, { total_bytes }) => sum + (total_bytes ?? 0), 0) : null,
            gpu: gpu.index,
          },
        ];
  });
}

function hostPlot({ id, title, metrics }: ChartKind<HostSample>, sample: Sample | null): Plot {
  const host = sample?.host ?? null;
  const lines = metrics
    .map((metric): PlotLine => {
      const now = host === null ? null : metric.read(host);
      return {
        id: metric.id,
        label: metric.line(),
        color: metric.color,
        series: metric.id,
        field: metric.id,
        now,
      };
    })
    .filter(({ now }) => absenceOf(now) === null);
  const [first] = metrics;
  const limit = first ? limitOf(first, host) : null;
  return {
    key: `host ${id}`,
    id,
    chart: id,
    title: title(),
    unit: first?.unit ?? PERCENT,
    lines,
    stack: [],
    limit,
    gpu: null,
  };
}

/** Returns whether the board and the driver support a metric. */
function isSupported(gpu: GpuState, metric: Metric): boolean {
  return absenceOf(readMetric(gpu, metric))?.absent !== 'not_supported';
}

/**
 * Returns whether a metric is drawn. `able` contains the GPUs that may support the metric,
 * including GPUs that do not respond, because nothing is known about these. A metric without such
 * GPUs is never drawn. It is always drawn if the user has selected the charts or no GPU responds.
 * Otherwise it is drawn if a GPU in `able` reports a value, or a responding GPU supports the
 * metric.
 */
function shouldDrawMetric(
  metric: Metric,
  able: readonly GpuState[],
  { state, gpus }: PlotsInput,
): boolean {
  const responding = gpus.filter(isResponding);
  return (
    able.length > 0 &&
    (state.charts !== null ||
      responding.length === 0 ||
      able.some((gpu) => valueOf(readMetric(gpu, metric)) !== null) ||
      responding.some((gpu) => isSupported(gpu, metric)))
  );
}

function readMetric({ now }: GpuState, metric: Metric): Reading<number> | null {
  if (now === null) {
    return null;
  }
  // Most boards lack some metrics. The JSON omits these metrics.
  const read = metric.read(now) as Reading<number> | undefined;
  return read ?? { absent: 'not_supported' };
}

function isResponding({ now }: GpuState): boolean {
  return now?.health.state === 'ok';
}
