/** What all charts of one drawing share, and what their lines have at a moment. */

import type { ChartLine, TimeWindow } from '../../chart/content';
import { indexAt, type SeriesSource, type Timeline } from '../../lib/timeline';
import type { PlotLine } from '../../model/dashboard/plots';
import type { DashboardState } from '../../model/dashboard/state';
import { valueOf } from '../../model/reading';
import type { Palette } from '../palette';
import type { Freshness } from '../value';

export interface PlotContext extends Pick<DashboardState, 'axes' | 'fitted'> {
  timeline: SeriesSource;
  /** The time that a value at the moment pointed at is the mean of; 0 where it is a reading. */
  mean_ms: number;
  /** An earlier span, moved to where what is shown is; `null` without one. */
  compared: SeriesSource | null;
  /** What the driver itself recorded, by the name of its series. */
  traces: ReadonlyMap<string, Timeline>;
  window: TimeWindow;
  palette: Palette;
  freshness: Freshness;
  /** The moment whose values are told; `null` for now. */
  at_ms: number | null;
  /** Lines that are not drawn, by id. */
  hidden: ReadonlySet<string>;
}

/** What the driver recorded itself, where there is such a record; else what was read. */
export function recorded(
  { series, trace }: PlotLine,
  { timeline, traces }: PlotContext,
): Pick<ChartLine, 'values' | 'times_ms' | 'extremes'> {
  const own = trace === undefined ? undefined : traces.get(trace);
  return own === undefined || trace === undefined
    ? { values: timeline.values(series), extremes: timeline.extremes?.(series) ?? null }
    : { values: own.values(trace), times_ms: own.times_ms };
}

/** The value of a line at a moment of the past; NaN where there is none. */
export function pastValue(line: PlotLine, at_ms: number, context: PlotContext): number {
  const { values, times_ms = context.window.times_ms } = recorded(line, context);
  return values[indexAt(times_ms, at_ms, context.window.gap_ms)] ?? NaN;
}

/** The value that a line had in the span it is compared with; NaN where there is none. */
export function earlierValue(
  { series }: PlotLine,
  at_ms: number,
  { compared, window }: PlotContext,
): number {
  return compared?.values(series)[indexAt(compared.times_ms, at_ms, window.gap_ms)] ?? NaN;
}

/** The value of a line at the moment that is shown; NaN where there is none. */
export function shownValue(line: PlotLine, context: PlotContext): number {
  return context.at_ms === null
    ? (valueOf(line.now) ?? NaN)
    : pastValue(line, context.at_ms, context);
}

/** The lowest and the highest reading behind the value of a line at a moment; `null` where it is a reading itself. */
export function pastRange(
  line: PlotLine,
  at_ms: number,
  context: PlotContext,
): readonly [number, number] | null {
  const { extremes, times_ms = context.window.times_ms } = recorded(line, context);
  const index = indexAt(times_ms, at_ms, context.window.gap_ms);
  const [low = NaN, high = NaN] = [extremes?.low[index], extremes?.high[index]];
  return low < high ? [low, high] : null;
}
