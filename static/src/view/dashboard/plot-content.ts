/** The values of a plot's lines, and the content of its chart. */

import { computeFittedAxis, computeUnzoomedAxis, findExtent } from '../../chart/axis';
import type { ChartContent, ChartLine, TimeWindow } from '../../chart/content';
import { nearestIndex, type SeriesSource, type Timeline } from '../../lib/timeline';
import { LIMITS_CHART } from '../../model/dashboard/kinds';
import type { Plot, PlotLine } from '../../model/dashboard/plots';
import type { DashboardState } from '../../model/dashboard/state';
import { valueOf } from '../../model/reading';
import { colorOf, dashOf, type Palette } from '../palette';
import type { Freshness } from '../value';
import type { Annotations } from './annotations';

/** The dash pattern of the lines of the earlier, compared span. */
const EARLIER_DASH = [1.5, 3.5];

/** The context that all plots of a frame share. */
export interface PlotContext extends Pick<DashboardState, 'axes' | 'fitted'> {
  timeline: SeriesSource;
  /**
   * If the value under the pointer is a mean, the length of its time range; 0 for a single reading.
   */
  mean_ms: number;
  /** The compared span, moved to the time of the displayed one; `null` without a comparison. */
  compared: SeriesSource | null;
  /** The driver's traces by series name. */
  traces: ReadonlyMap<string, Timeline>;
  window: TimeWindow;
  palette: Palette;
  freshness: Freshness;
  /** The time of the displayed values; `null` for now. */
  at_ms: number | null;
  /** The IDs of hidden lines. */
  hidden: ReadonlySet<string>;
  /** The ID of the line whose name the pointer is on in the legend. */
  pointed: string | null;
  onPoint: (id: string | null) => void;
  height_px: number;
  /** Changes the state of the dashboard. */
  change: ChangeState;
}

export type ChangeState = (edit: (state: DashboardState, now_ms: number) => DashboardState) => void;

type Values = Pick<ChartLine, 'values' | 'times_ms' | 'extremes'>;

/** Returns the values of a line: the driver's trace if there is one, otherwise the readings. */
export function readValues({ series, trace, own }: PlotLine, context: PlotContext): Values {
  const record = trace === undefined ? undefined : context.traces.get(trace);
  if (record !== undefined && trace !== undefined) {
    return { values: record.values(trace), times_ms: record.times_ms };
  }
  const { timeline } = context;
  return (
    own ?? { values: timeline.values(series), extremes: timeline.readExtremes?.(series) ?? null }
  );
}

/** Returns the value of a line at a past time, or NaN if there is none. */
export function pastValue(line: PlotLine, at_ms: number, context: PlotContext): number {
  const { values, times_ms = context.window.times_ms } = readValues(line, context);
  return values[nearestIndex(times_ms, at_ms, context.window.gap_ms)] ?? NaN;
}

/** Returns the value of a line in the compared span, or NaN if there is none. */
export function comparedValue(
  { series }: PlotLine,
  at_ms: number,
  { compared, window }: PlotContext,
): number {
  return compared?.values(series)[nearestIndex(compared.times_ms, at_ms, window.gap_ms)] ?? NaN;
}

/** Returns the line with its value at the displayed time, which is NaN if there is none. */
export function withValue(line: PlotLine, context: PlotContext): PlotLine & { value: number } {
  const { at_ms } = context;
  const value = at_ms === null ? (valueOf(line.now) ?? NaN) : pastValue(line, at_ms, context);
  return { ...line, value };
}

/**
 * Returns the lowest and the highest reading behind a mean, or `null` if the value is a single
 * reading.
 */
export function pastRange(
  line: PlotLine,
  at_ms: number,
  context: PlotContext,
): readonly [number, number] | null {
  const { extremes, times_ms = context.window.times_ms } = readValues(line, context);
  const index = nearestIndex(times_ms, at_ms, context.window.gap_ms);
  const [low = NaN, high = NaN] = [extremes?.low[index], extremes?.high[index]];
  return low < high ? [low, high] : null;
}

/** Returns the lines that the user has not hidden. */
export function visibleLines(lines: readonly PlotLine[], { hidden }: PlotContext): PlotLine[] {
  return lines.filter(({ id }) => !hidden.has(id));
}

/**
 * Returns the stacked lines for the legend and the tooltip. The chart of limits has many lines, so
 * those whose value is 0 in the whole displayed time are left out.
 */
export function visibleLayers(
  { id, stack, unit }: Plot,
  context: PlotContext,
): readonly PlotLine[] {
  const zero = unit.text(0);
  const isVisible = (line: PlotLine): boolean => {
    const [, highest] = findExtent([readValues(line, context)], context.window) ?? [0, 0];
    return unit.text(Math.max(highest, valueOf(line.now) ?? 0)) !== zero;
  };
  return id === LIMITS_CHART ? stack.filter(isVisible) : stack;
}

export function lineColor({ color, isGpu }: PlotLine, palette: Palette): string {
  return colorOf(isGpu === true ? { ...palette, slots: palette.gpus } : palette, color);
}

/** Returns the content of a plot's chart. `near` is the ID of the line at the pointer. */
export function makeChartContent(
  { id, unit, limit, limitName, stack }: Plot,
  lines: readonly PlotLine[],
  { bands, markers }: Annotations,
  context: PlotContext,
  at_ms: number | null,
  near: string | null,
): ChartContent {
  const { window, palette, compared } = context;
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
  const shown = visibleLines(lines, context);
  const all = [...shown.flatMap(earlier), ...shown.map(current)];
  const layers = visibleLines(stack, context).map(current);
  const fitted = context.fitted ? computeFittedAxis(unit, layers.length > 0, all, window) : null;
  const zoomed = context.axes[id] ?? fitted;
  const [floor, ceiling] = zoomed ?? computeUnzoomedAxis(unit, limit, all, window);
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
