/**
 * The charts of a dashboard with their lines, section by section: what is drawn, before it is
 * drawn.
 */

import type { ChartLine } from '../../chart/content';
import { plainText } from '../../lib/text';
import { trans } from '../../lib/translation';
import type { HostSample, Reading, Sample } from '../../wire';
import { seriesKey, type GpuState } from '../gpu';
import { heldKey, type HolderRow } from '../holders';
import {
  GPU_METRICS,
  HELD,
  HOST_METRICS,
  limitLineOf,
  limitOf,
  MIG,
  MIG_METRICS,
  type Color,
  type Metric,
} from '../metric';
import { gpuTitle } from '../gpu-title';
import { migRows } from '../mig';
import { absenceOf, valueOf } from '../reading';
import { PERCENT, type Unit } from '../unit';
import { chartsOf, isApart } from './arrange';
import { gpuCharts, hostCharts, type ChartKind } from './kinds';
import type { DashboardState } from './state';

export interface PlotLine {
  /**
   * What it is of: the same GPU, reading or holder has the same in every chart, so that a legend
   * acts on all.
   */
  id: string;
  label: string;
  /** What it is called where nothing around it says what it is. */
  name?: string;
  color: Color;
  series: string;
  /** The field of the catalogue that it shows. */
  field: string;
  /** What is read now; `null` before the first sample. */
  now: Reading<number> | null;
  /** Whether `now` is the last known value of a GPU that does not respond. */
  isStale?: boolean;
  /** Under which name its series is among the driver's own records, where it is. */
  trace?: string;
  /** Whether `color` is that of a GPU. */
  isGpu?: boolean;
  /** Its values, where they are computed from other lines. */
  own?: Pick<ChartLine, 'values' | 'extremes'>;
}

export interface Plot {
  key: string;
  /** The chart that it is, whatever GPU it is of. */
  id: string;
  /** As somebody chooses it; those of MIG devices are chosen together. */
  chart: string;
  title: string;
  unit: Unit;
  lines: readonly PlotLine[];
  /** Lines of which each stands upon those before it. */
  stack: readonly PlotLine[];
  /** What the values are out of; `null` where that is not known. */
  limit: number | null;
  limitName?: string;
  /** The GPU, where it is of one; the machine's are of none. */
  gpu: number | null;
}

/** Charts that belong together. */
export interface Section {
  key: string;
  /** What its charts are of; `null` for all GPUs together, or the machine. */
  gpu: GpuState | null;
  title: string;
  plots: readonly Plot[];
  /** Charts that its board or driver has nothing for. */
  missing: readonly string[];
}

/** Who holds a GPU's memory, now or in what is shown. */
export type Holder = Pick<HolderRow, 'holder' | 'name' | 'slot' | 'memory_bytes'>;

export interface PlotsInput {
  state: DashboardState;
  gpus: readonly GpuState[];
  sample: Sample | null;
  /** By index. */
  holders: ReadonlyMap<number, readonly Holder[]>;
}

/** All that a dashboard may draw over time, by its names in history. */
export const DRAWN: readonly string[] = [
  ...[...GPU_METRICS, ...HOST_METRICS].map(({ id }) => id),
  HELD,
  MIG,
];

/** The readings whose lines these sections have, by their names in history. */
export function metricsOf(sections: readonly Section[]): string[] {
  const lines = sections.flatMap(({ plots }) =>
    plots.flatMap((plot) => [...plot.lines, ...plot.stack]),
  );
  return [...new Set(lines.map(({ field }) => field))].sort();
}

/** The same sections; of what stands upon each other, only what is known. */
export function withStacks(
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

/** The sections of a dashboard, from the top. */
export function sectionsOf(input: PlotsInput): Section[] {
  const { state, gpus, sample } = input;
  const chosen = gpus.filter(({ index }) => state.gpus?.includes(index) ?? true);
  const ids = chartsOf(state, chosen.length);
  const kinds = gpuCharts(ids);
  const withMig = ids.includes(MIG);
  const sections = isApart(state, chosen.length)
    ? chosen.map((gpu) => ofGpu(gpu, kinds, withMig, input))
    : [ofAll(chosen, kinds, input)];
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

function ofGpu(
  gpu: GpuState,
  kinds: readonly ChartKind[],
  withMig: boolean,
  input: PlotsInput,
): Section {
  const able = kinds.filter(({ metrics }) => metrics.some((metric) => isThere(gpu, metric)));
  const plots = able
    .filter(({ metrics }) => metrics.some((metric) => isDrawn(metric, [gpu], input)))
    .map((kind) => gpuPlot(gpu, kind, input.holders.get(gpu.index) ?? []));
  const missing = kinds
    .filter((kind) => !able.includes(kind))
    .map((kind) => gpuTitle(kind.id, kind.title(), [gpu]));
  const title = `${gpu.index} ${plainText(gpu.name)}`;
  const mig = withMig ? migPlots(gpu) : [];
  return { key: `gpu ${gpu.index}`, gpu, title, plots: [...plots, ...mig], missing };
}

function gpuPlot(
  gpu: GpuState,
  { id, title, metrics }: ChartKind,
  holders: readonly Holder[],
): Plot {
  const able = metrics.filter((metric) => isThere(gpu, metric));
  const lines = able.map((metric): PlotLine => {
    const series = seriesKey(gpu, metric.id);
    // What is in use in all stands above its parts, and takes no color from them.
    const color = id === 'memory' ? 'text' : metric.color;
    const line = {
      id: metric.id,
      label: metric.line(),
      color,
      series,
      field: metric.id,
      now: readOf(gpu, metric),
    };
    return metric.id === 'power.instant_watts'
      ? { ...line, trace: seriesKey(gpu, 'power_watts') }
      : line;
  });
  const stack = (id === 'memory' ? holders : []).map(
    ({ holder, name, slot, memory_bytes }): PlotLine => ({
      id: holder,
      label: plainText(name),
      color: slot,
      series: heldKey(gpu, holder),
      field: 'memory.used_bytes',
      now: memory_bytes,
    }),
  );
  const [first] = able;
  const unit = (first ?? metrics[0])?.unit ?? PERCENT;
  const key = `gpu ${gpu.index} ${id}`;
  const limit = limited(first ? [limitLineOf(first, gpu)] : []);
  return {
    key,
    id,
    chart: id,
    title: gpuTitle(id, title(), [gpu]),
    unit,
    lines,
    stack,
    ...limit,
    gpu: gpu.index,
  };
}

/** One chart for each reading, with a line for each GPU. */
function ofAll(gpus: readonly GpuState[], kinds: readonly ChartKind[], input: PlotsInput): Section {
  const plots = kinds.flatMap(({ metrics }) =>
    metrics.flatMap((metric): Plot[] => {
      const able = gpus.filter((gpu) => isThere(gpu, metric));
      const lines = able.map((gpu): PlotLine => ({
        id: String(gpu.index),
        label: String(gpu.index),
        name: trans.__('GPU %1', gpu.index),
        color: gpu.index,
        isGpu: true,
        series: seriesKey(gpu, metric.id),
        field: metric.id,
        now: readOf(gpu, metric),
        isStale: !isResponding(gpu),
      }));
      const limit = limited(able.map((gpu) => limitLineOf(metric, gpu)));
      const { id, label, unit } = metric;
      return !isDrawn(metric, able, input)
        ? []
        : [
            {
              key: `all ${id}`,
              id,
              chart: id,
              title: gpuTitle(id, label(), able),
              unit,
              lines,
              stack: [],
              ...limit,
              gpu: null,
            },
          ];
    }),
  );
  return {
    key: 'all',
    gpu: null,
    title: trans._n('%1 GPU', '%1 GPUs', gpus.length),
    plots,
    missing: [],
  };
}

/** The highest of the limits. */
function limited(
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
  const partitions = gpuTitle(MIG, '', [gpu]);
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
            chart: MIG,
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

/** Returns whether the board and the driver support a reading. */
function isThere(gpu: GpuState, metric: Metric): boolean {
  return absenceOf(readOf(gpu, metric))?.absent !== 'not_supported';
}

/**
 * Returns whether a reading of these GPUs, which may support it, is drawn. Of GPUs that do not
 * respond nothing is known: unless somebody chose charts, others of the machine have to support it.
 */
function isDrawn(metric: Metric, able: readonly GpuState[], { state, gpus }: PlotsInput): boolean {
  const responding = gpus.filter(isResponding);
  return (
    able.length > 0 &&
    (state.charts !== null ||
      responding.length === 0 ||
      able.some((gpu) => valueOf(readOf(gpu, metric)) !== null) ||
      responding.some((gpu) => isThere(gpu, metric)))
  );
}

function readOf({ now }: GpuState, metric: Metric): Reading<number> | null {
  if (now === null) {
    return null;
  }
  // Most boards lack some readings, which are then left out of JSON.
  const read = metric.read(now) as Reading<number> | undefined;
  return read ?? { absent: 'not_supported' };
}

function isResponding({ now }: GpuState): boolean {
  return now?.health.state === 'ok';
}
