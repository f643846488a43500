/** The values of a plot's lines, and what its chart shows. */

import { fittedAxis, wholeAxis } from '../../chart/axis';
import type { ChartContent, ChartLine, TimeWindow } from '../../chart/content';
import { indexAt, type SeriesSource, type Timeline } from '../../lib/timeline';
import type { Plot, PlotLine } from '../../model/dashboard/plots';
import type { DashboardState } from '../../model/dashboard/state';
import { valueOf } from '../../model/reading';
import { colorOf, dashOf, type Palette } from '../palette';
import type { Freshness } from '../value';
import type { Annotations } from './annotations';

/** The strokes of lines that are compared with. */
const EARLIER_DASH = [1.5, 3.5];

/** The context that all plots of one rendering share. */
export interface PlotContext extends Pick<DashboardState, 'axes' | 'fitted'> {
  timeline: SeriesSource;
  /** The time that a value at the moment pointed at is the mean of; 0 where it is a reading. */
  mean_ms: number;
  /** An earlier span, moved to the time of the span that is shown; `null` without one. */
  compared: SeriesSource | null;
  /** The driver's own records, by the name of their series. */
  traces: ReadonlyMap<string, Timeline>;
  window: TimeWindow;
  palette: Palette;
  freshness: Freshness;
  /** The moment that values are of; `null` for now. */
  at_ms: number | null;
  /** Lines that are not drawn, by id. */
  hidden: ReadonlySet<string>;
  /** The line whose name is pointed at, by id. */
  pointed: string | null;
  onPoint: (id: string | null) => void;
  height_px: number;
  /** Changes what the dashboard shows. */
  change: Change;
}

export type Change = (edit: (state: DashboardState, now_ms: number) => DashboardState) => void;

type Values = Pick<ChartLine, 'values' | 'times_ms' | 'extremes'>;

/** Returns the driver's own record of a line if there is one, or else its readings. */
export function readValues({ series, trace, own }: PlotLine, context: PlotContext): Values {
  const record = trace === undefined ? undefined : context.traces.get(trace);
  if (record !== undefined && trace !== undefined) {
    return { values: record.values(trace), times_ms: record.times_ms };
  }
  const { timeline } = context;
  return own ?? { values: timeline.values(series), extremes: timeline.extremes?.(series) ?? null };
}

/** Returns the value of a line at a moment of the past; NaN if there is none. */
export function pastValue(line: PlotLine, at_ms: number, context: PlotContext): number {
  const { values, times_ms = context.window.times_ms } = readValues(line, context);
  return values[indexAt(times_ms, at_ms, context.window.gap_ms)] ?? NaN;
}

/** Returns the value that a line had in the span it is compared with; NaN if there is none. */
export function earlierValue(
  { series }: PlotLine,
  at_ms: number,
  { compared, window }: PlotContext,
): number {
  return compared?.values(series)[indexAt(compared.times_ms, at_ms, window.gap_ms)] ?? NaN;
}

/** Returns a line with its value at the moment that is shown; NaN if there is none. */
export function withValue(line: PlotLine, context: PlotContext): PlotLine & { value: number } {
  const { at_ms } = context;
  const value = at_ms === null ? (valueOf(line.now) ?? NaN) : pastValue(line, at_ms, context);
  return { ...line, value };
}

/** Returns the lowest and the highest reading behind a value; `null` if it is a reading itself. */
export function pastRange(
  line: PlotLine,
  at_ms: number,
  context: PlotContext,
): readonly [number, number] | null {
  const { extremes, times_ms = context.window.times_ms } = readValues(line, context);
  const index = indexAt(times_ms, at_ms, context.window.gap_ms);
  const [low = NaN, high = NaN] = [extremes?.low[index], extremes?.high[index]];
  return low < high ? [low, high] : null;
}

export function lineColor({ color, isGpu }: PlotLine, palette: Palette): string {
  return colorOf(isGpu === true ? { ...palette, slots: palette.gpus } : palette, color);
}

/** Returns what the chart of a plot shows; `near` is the line at the pointer. */
export function contentOf(
  { id, unit, limit, limitName, stack }: Plot,
  lines: readonly PlotLine[],
  { bands, markers }: Annotations,
  context: PlotContext,
  at_ms: number | null,
  near: string | null,
): ChartContent {
  const { window, palette, compared, hidden } = context;
  const pointed = [...lines, ...stack].find((line) => line.id === context.pointed)?.id ?? null;
  const drawn = (line: PlotLine, values: Values): ChartLine => ({
    ...values,
    id: line.id,
    color: lineColor(line, palette),
    faint: pointed !== null && pointed !== line.id,
  });
  const current = (line: PlotLine): ChartLine => ({
    ...drawn(line, readValues(line, context)),
    ...dashOf(line.color),
    strong: line.id === near,
    unfilled: line.own !== undefined,
  });
  const isShown = (line: PlotLine): boolean => !hidden.has(line.id);
  const earlier = (line: PlotLine): ChartLine[] =>
    compared === null || line.own !== undefined
      ? []
      : [
          {
            ...drawn(line, { values: compared.values(line.series), times_ms: compared.times_ms }),
            id: `earlier:${line.id}`,
            dash: EARLIER_DASH,
          },
        ];
  const shown = lines.filter(isShown);
  const all = [...shown.flatMap(earlier), ...shown.map(current)];
  const layers = stack.filter(isShown).map(current);
  const fitted = context.fitted ? fittedAxis(unit, layers.length > 0, all, window) : null;
  const zoomed = context.axes[id] ?? fitted;
  const [floor, ceiling] = zoomed ?? wholeAxis(unit, limit, all, window);
  return {
    axis: unit,
    style: palette,
    window,
    floor,
    ceiling,
    clipped: zoomed !== null,
    lines: all,
    stack: layers,
    limit,
    ...(limitName !== undefined && { limitName }),
    bands,
    markers,
    at_ms,
  };
}
