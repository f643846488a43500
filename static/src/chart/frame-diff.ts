/** What a drawn frame shows, and whether the next would be visibly different. */

import type { ChartContent, PlotArea } from './content';

/** A step of the past to the left that is worth a drawing, in pixels of the device. */
const STEP_PX = 2;
/** The newest value has its number beside the chart; the line's end may follow a little later. */
const MAX_DELAY_MS = 1000;

export interface FrameSignature {
  /** All that is not told by the others. */
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
  // A band that goes on ends where the chart does.
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

/** Whether the difference is visible, `since_ms` after the last drawing. */
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
