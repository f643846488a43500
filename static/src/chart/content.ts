/** What a chart shows, and where on its canvas. */

import type { Extremes } from '../lib/timeline';
import type { Scales } from './line';

/** The part of the past that is shown. */
export interface TimeWindow {
  times_ms: Float64Array;
  /** Which version of the past it is; another where more became known of it. */
  revision: number | string;
  from_ms: number;
  to_ms: number;
  /** Times further apart than this have nothing between them. */
  gap_ms: number;
}

export interface ChartLine {
  /** Tells lines of one color apart. */
  id?: string;
  /** One for each of the window's times; NaN is a hole. */
  values: Float64Array;
  /** What lies behind values that are means: a band behind the line. */
  extremes?: Extremes | null;
  /** Times of its own, where they are others than the window's. */
  times_ms?: Float64Array;
  color: string;
  /** Lengths of strokes and gaps, in pixels of the page, where there are more lines than colors. */
  dash?: readonly number[];
  /** Whether others are looked at just now. */
  faint?: boolean;
  /** Whether it is the one pointed at. */
  strong?: boolean;
  /** Whether the area below is left empty, also if it is the only line. */
  unfilled?: boolean;
}

export interface Band {
  from_ms: number;
  to_ms: number;
  color: string;
  label: string;
  /** What a tooltip calls it, where that is more. */
  title?: string;
}

/** A time that is marked on the axis. */
export interface EventMarker {
  at_ms: number;
  color: string;
  label: string;
  /** Whether it is marked on the axis alone, without a line across. */
  small?: boolean;
}

export interface ChartStyle {
  text: string;
  muted: string;
  grid: string;
  font: string;
}

export interface ChartAxis {
  /** Marks stand at round multiples of it. */
  base: number;
  /** The texts of marks, all in one format. */
  ticks: (values: readonly number[]) => string[];
}

export interface ChartContent {
  axis: ChartAxis;
  style: ChartStyle;
  window: TimeWindow;
  floor: number;
  ceiling: number;
  /** Whether values beyond floor and ceiling are left out; else they are drawn at the edge. */
  clipped?: boolean;
  lines: readonly ChartLine[];
  /** Lines of which each stands upon those before it, filled; they lie under `lines`. */
  stack?: readonly ChartLine[];
  /** A value to mark across, with its number on the axis. */
  limit?: number | null;
  /** What the limit is called, where its number does not tell: `slowdown`. */
  limitName?: string;
  bands?: readonly Band[];
  markers?: readonly EventMarker[];
  /** The time under the pointer; `null` for now. */
  at_ms: number | null;
}

/** Where the lines are drawn, in pixels of the device. */
export interface PlotArea extends Scales {
  /** The pixels of the device in one of the page. */
  px: number;
  /** Of the whole canvas. */
  width: number;
  height: number;
  /** Whether there is room for axes. */
  hasAxes: boolean;
  left: number;
  top: number;
  right: number;
  bottom: number;
  /** The times at its edges, at whole pixels, so that a line moves by whole pixels. */
  from_ms: number;
  to_ms: number;
}
