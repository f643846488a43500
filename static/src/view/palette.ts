/** The colors of the style sheet, for drawing on a canvas. */

import type { ChartStyle } from '../chart/content';
import { COLOR_COUNT } from '../model/color-slots';
import type { Color } from '../model/metric';
import type { Level } from '../model/describe';

export interface Palette extends ChartStyle {
  lines: Record<Exclude<Color, number>, string>;
  /** The colors of processes, which are also used for the lines of a chart. */
  slots: readonly string[];
  /** The colors of GPUs. */
  gpus: readonly string[];
  /** The background of charts. */
  card: string;
  /** The colors of marks on the time axis, by severity. */
  levels: Record<Level, string>;
}

/**
 * The dashes of lines. Like the angles in `STRIPES_DEG`, they distinguish color numbers that share
 * a color. Both lists have the same length.
 */
const DASHES: readonly (readonly number[] | undefined)[] = [
  undefined,
  [7, 3],
  [2, 3],
  [7, 3, 2, 3],
  [12, 4],
  [2, 6],
];
const STRIPES_DEG = [0, 135, 45, 90, 180, 112];

/** Returns a color by name or number. */
export function colorOf(palette: Palette, color: Color): string {
  return typeof color === 'number'
    ? (palette.slots[color % COLOR_COUNT] ?? palette.text)
    : palette.lines[color];
}

/** Returns the index of a color's dashes in `DASHES` and of its stripes in `STRIPES_DEG`. */
function patternIndex(color: Color): number {
  return typeof color === 'number' ? Math.floor(color / COLOR_COUNT) % DASHES.length : 0;
}

export function dashOf(color: Color): { dash?: readonly number[] } {
  const dash = DASHES[patternIndex(color)];
  return dash === undefined ? {} : { dash };
}

/** The attributes and custom properties of a colored element, for JSX to spread. */
interface Paint {
  'data-paint'?: string;
  'data-stripes'?: string | undefined;
  style: Record<string, string>;
}

/**
 * Returns the attributes that color an element. `paint` is the color number of a process or line,
 * or a name for memory without a process. The style sheet assigns the colors.
 */
export function makePaint(paint: number | string): Paint {
  if (typeof paint === 'string') {
    return { 'data-paint': paint, style: {} };
  }
  const { style, ...stripes } = makeStripes(paint);
  for (const part of ['process', 'on-process']) {
    style[`--_${part}`] = `var(--gpumon-${part}-${paint % COLOR_COUNT},var(--gpumon-${part}))`;
  }
  return { 'data-paint': 'color', ...stripes, style };
}

/**
 * Returns the attributes for stripes. Like the dashes of lines, stripes distinguish elements of the
 * same color.
 */
export function makeStripes(color: Color): Paint {
  const index = patternIndex(color);
  return index === 0
    ? { style: {} }
    : { 'data-stripes': String(index), style: { '--_stripes': `${STRIPES_DEG[index] ?? 0}deg` } };
}

/** Reads the colors of `root`, which depend on the theme. */
export function readPalette(root: Element): Palette {
  const style = getComputedStyle(root);
  const color = (name: string): string => style.getPropertyValue(name).trim() || '#888';
  const series = (name: string): string[] =>
    Array.from({ length: COLOR_COUNT }, (_, place) => color(`--gpumon-${name}-${place}`));
  return {
    lines: {
      utilization: color('--gpumon-utilization'),
      memory: color('--gpumon-memory'),
      power: color('--gpumon-power'),
      temperature: color('--gpumon-temperature'),
      text: style.color,
    },
    slots: series('process'),
    gpus: series('gpu'),
    card: color('--_card'),
    text: style.color,
    muted: color('--gpumon-axis'),
    grid: color('--gpumon-grid'),
    levels: {
      none: color('--gpumon-axis'),
      notice: color('--gpumon-notice'),
      warning: color('--gpumon-warning'),
      critical: color('--gpumon-critical'),
    },
    font: style.fontFamily,
  };
}
