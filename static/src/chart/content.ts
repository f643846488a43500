/** The content of a chart, and its layout on the canvas. */

import type { Extremes } from '../lib/timeline';
import type { Scales } from './line';

/** The visible time range. */
export interface TimeWindow {
  times_ms: Float64Array;
  /** The version of the data, which changes when older data are loaded. */
  revision: number | string;
  from_ms: number;
  to_ms: number;
  /** If two consecutive values are more than this duration apart, there is a gap between them. */
  gap_ms: number;
}

export interface ChartLine {
  /** Distinguishes lines of the same color. */
  id?: string;
  /** The values at the times of the window. NaN leaves a gap in the line. */
  values: Float64Array;
  /**
   * If the values are means: the lowest and the highest reading behind each mean. They are drawn as
   * a band behind the line.
   */
  extremes?: Extremes | null;
  /** The times of the values, if they differ from the window's. */
  times_ms?: Float64Array;
  color: string;
  /** The lengths of dashes and gaps in CSS pixels, for charts with more lines than colors. */
  dash?: readonly number[];
  /** Whether the line is dimmed because another line is highlighted. */
  faint?: boolean;
  /** Whether the line is highlighted because the pointer is on it. */
  strong?: boolean;
  /**
   * Whether the area below the line is never filled. By default, it is filled if the chart has no
   * other lines.
   */
  unfilled?: boolean;
}

export interface Band {
  from_ms: number;
  to_ms: number;
  color: string;
  label: string;
  /** The text of the tooltip, if it is longer than the label. */
  title?: string;
}

/** A time that is marked on the axis. */
export interface EventMarker {
  at_ms: number;
  color: string;
  label: string;
  /** Whether the mark is on the axis only, without a vertical line. */
  small?: boolean;
}

export interface ChartStyle {
  text: string;
  muted: string;
  grid: string;
  font: string;
}

export interface ChartAxis {
  /**
   * The unit of round axis labels. For example, if it is the number of bytes in a GiB, labels are
   * round numbers of GiB.
   */
  base: number;
  /** Returns the axis labels of the values, all in the same format. */
  ticks: (values: readonly number[]) => string[];
}

export interface ChartContent {
  axis: ChartAxis;
  style: ChartStyle;
  window: TimeWindow;
  floor: number;
  ceiling: number;
  /** Whether values outside the axis are omitted. Otherwise they are drawn at its edge. */
  clipped?: boolean;
  lines: readonly ChartLine[];
  /** Filled lines that are stacked on top of each other, drawn behind `lines`. */
  stack?: readonly ChartLine[];
  /** A value that is marked by a horizontal line, with a label on the axis. */
  limit?: number | null;
  /** The name of the limit, such as `slowdown`, if the value alone is not clear. */
  limitName?: string;
  bands?: readonly Band[];
  markers?: readonly EventMarker[];
  /** The time under the pointer; `null` stands for now. */
  at_ms: number | null;
}

/** The area of a canvas in which lines are drawn, in device pixels. */
export interface PlotArea extends Scales {
  /** The number of device pixels per CSS pixel. */
  px: number;
  /** The width of the whole canvas. */
  width: number;
  height: number;
  /** Whether there is room for axes. */
  hasAxes: boolean;
  left: number;
  top: number;
  right: number;
  bottom: number;
  /**
   * The start of the visible time range, rounded to whole pixels, so that lines move by whole
   * pixels.
   */
  from_ms: number;
  to_ms: number;
}
