import { describe, expect, it } from 'vitest';

import type { ChartContent, PlotArea } from './content';
import { frameSignature, isVisibleChange } from './chart';

const MINUTE_MS = 60_000;

/** Returns a plot area that shows the minute until `to_ms` on 600 pixels. */
function createPlotArea(to_ms: number): PlotArea {
  return {
    px: 1,
    width: 600,
    height: 100,
    hasAxes: false,
    left: 0,
    top: 0,
    right: 600,
    bottom: 100,
    from_ms: to_ms - MINUTE_MS,
    to_ms,
    x: (at_ms) => (at_ms - to_ms) / 100 + 600,
    y: (value) => 100 - value,
  };
}

function createContent(newest: number, changes: Partial<ChartContent> = {}): ChartContent {
  const window = {
    times_ms: new Float64Array([0]),
    revision: 0,
    from_ms: 0,
    to_ms: MINUTE_MS,
    gap_ms: 1500,
  };
  const lines = [{ values: new Float64Array([newest]), color: 'red' }];
  const style = { text: '', muted: '', grid: '', font: '' };
  return {
    axis: { base: 1, ticks: (values) => values.map(String) },
    style,
    window,
    floor: 0,
    ceiling: 100,
    lines,
    at_ms: null,
    ...changes,
  };
}

const before = frameSignature(createContent(50), createPlotArea(MINUTE_MS));
const seen = (changed: ChartContent, to_ms: number, since_ms: number): boolean =>
  isVisibleChange(before, frameSignature(changed, createPlotArea(to_ms)), since_ms);

describe('redrawing a chart', () => {
  it('movement by two pixels redraws the chart', () => {
    expect(seen(createContent(50), MINUTE_MS + 100, 5000)).toBe(false);
    expect(seen(createContent(50), MINUTE_MS + 200, 0)).toBe(true);
  });

  it('new value redraws only after a second', () => {
    expect(seen(createContent(60), MINUTE_MS, 900)).toBe(false);
    expect(seen(createContent(60), MINUTE_MS, 1000)).toBe(true);
    expect(seen(createContent(50.3), MINUTE_MS, 5000)).toBe(false);
  });

  it('other content changes redraw the chart at once', () => {
    const { window, lines } = createContent(50);
    const others: Partial<ChartContent>[] = [
      { at_ms: 5 },
      { ceiling: 120 },
      { limit: 90 },
      { window: { ...window, revision: 1 } },
      { lines: lines.map((line) => ({ ...line, faint: true })) },
      { lines: lines.map((line) => ({ ...line, strong: true })) },
      { lines: [...lines, ...lines] },
      { lines: lines.map((line) => ({ ...line, id: 'other' })) },
      { bands: [{ from_ms: 1, to_ms: 2, color: 'blue', label: '' }] },
      { markers: [{ at_ms: 1, color: 'blue', label: '' }] },
    ];
    expect(others.map((changes) => seen(createContent(50, changes), MINUTE_MS, 0))).toEqual(
      others.map(() => true),
    );
  });

  it('growing band of ongoing condition causes no redraw', () => {
    const band = (to_ms: number): Partial<ChartContent> => ({
      bands: [{ from_ms: 1, to_ms, color: 'b', label: '' }],
    });
    const going = frameSignature(createContent(50, band(MINUTE_MS)), createPlotArea(MINUTE_MS));
    const further = frameSignature(
      createContent(50, band(MINUTE_MS + 90)),
      createPlotArea(MINUTE_MS + 100),
    );
    const ended = frameSignature(createContent(50, band(30_000)), createPlotArea(MINUTE_MS));
    expect(isVisibleChange(going, further, 0)).toBe(false);
    expect(isVisibleChange(going, ended, 0)).toBe(true);
  });
});
