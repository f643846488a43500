/** A comparison of chart frames, to skip drawing a frame without a visible change. */

import type { ChartContent, PlotArea } from './content';

/** The distance in device pixels by which lines must move for a new frame. */
const STEP_PX = 2;
/**
 * The maximum delay before the end of a line shows the newest value, which is also shown as text
 * next to the chart.
 */
const MAX_DELAY_MS = 1000;

export interface FrameSignature {
  /** A string of all other content that makes a visible difference. */
  shape: string;
  to_ms: number;
  pixel_ms: number;
  ends: string;
}

export function frameSignature(content: ChartContent, area: PlotArea): FrameSignature {
  const {
    window,
    lines,
    stack = [],
    bands = [],
    markers = [],
    at_ms,
    floor,
    ceiling,
    limit,
  } = content;
  const all = [...lines, ...stack];
  const pixel_ms = (area.to_ms - area.from_ms) / (area.right - area.left);
  // The end of an ongoing band moves with the right edge of the chart, so its movement does not
  // count as a change.
  const upToNow_ms = area.to_ms - STEP_PX * pixel_ms;
  const bandEdges = bands.map(({ from_ms, to_ms, color }) => [
    from_ms,
    to_ms > upToNow_ms ? '' : to_ms,
    color,
  ]);
  const scale = (area.to_ms - area.from_ms).toFixed();
  const frame = [
    window.revision,
    scale,
    area.right,
    area.bottom,
    floor,
    ceiling,
    limit ?? '',
    at_ms ?? '',
  ];
  return {
    shape: [
      frame,
      all.map(({ id, color, faint, strong }) => [id, color, faint === true, strong === true]),
      bandEdges,
      markers.length,
      markers.at(-1)?.at_ms ?? '',
    ].join(),
    to_ms: area.to_ms,
    pixel_ms,
    ends: all.map(({ values }) => Math.round(area.y(values.at(-1) ?? NaN))).join(),
  };
}

/** Returns whether the difference is visible, `since_ms` after the last frame. */
export function isVisibleChange(
  before: FrameSignature,
  after: FrameSignature,
  since_ms: number,
): boolean {
  return (
    before.shape !== after.shape ||
    Math.abs(after.to_ms - before.to_ms) >= STEP_PX * after.pixel_ms ||
    (since_ms >= MAX_DELAY_MS && before.ends !== after.ends)
  );
}
