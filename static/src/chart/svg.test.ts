// @vitest-environment jsdom
import { expect, it } from 'vitest';

import type { ChartContent, PlotArea } from './content';
import { paintChart } from './paint';
import { SvgSurface } from './svg';

const AREA: PlotArea = {
  px: 1,
  width: 200,
  height: 100,
  hasAxes: true,
  left: 50,
  right: 190,
  top: 10,
  bottom: 80,
  from_ms: 0,
  to_ms: 140,
  x: (at_ms) => 50 + at_ms,
  y: (value) => 80 - 0.7 * value,
};

const CONTENT: ChartContent = {
  axis: { base: 1, ticks: (values) => values.map((value) => `${value} %`) },
  style: { text: 'black', muted: 'gray', grid: 'silver', font: 'sans-serif' },
  window: {
    times_ms: new Float64Array([0, 70, 140]),
    revision: 0,
    from_ms: 0,
    to_ms: 140,
    gap_ms: 100,
  },
  floor: 0,
  ceiling: 100,
  lines: [{ values: new Float64Array([0, 50, 100]), color: 'red', dash: [2, 1] }],
  bands: [{ from_ms: 10, to_ms: 120, color: 'green', label: '<script>' }],
  markers: [{ at_ms: 60, color: 'blue', label: '' }],
  at_ms: null,
};

it('names in SVG chart are text only', () => {
  const surface = new SvgSurface(200, 100, (text) => ({ width: 5 * text.length }) as TextMetrics);
  surface.font = 'bold 10px system-ui, sans-serif';
  paintChart(surface, AREA, CONTENT);
  const svg = new DOMParser().parseFromString(surface.text, 'image/svg+xml').documentElement;
  expect(svg.getAttribute('viewBox')).toBe('0 0 200 100');
  const line = svg.querySelector('g[clip-path="url(#clip1)"] > path[stroke="red"]');
  expect(line?.getAttribute('d')).toBe('M50 80L190 10');
  expect(line?.getAttribute('stroke-dasharray')).toBe('2 1');
  const texts = [...svg.querySelectorAll('text')];
  expect(texts.map(({ textContent }) => textContent)).toEqual(
    expect.arrayContaining(['50 %', '100 %', '<script>']),
  );
  expect(texts[0]?.getAttribute('font-size')).toBe('10px');
  expect(texts[0]?.getAttribute('font-family')).toBe('system-ui, sans-serif');
  expect(svg.querySelector('script')).toBeNull();
  // Content after the clipped lines is not clipped.
  expect(svg.querySelector('svg > path[fill="blue"]')).not.toBeNull();
});
