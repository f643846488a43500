/** The colors of the style sheet, for drawing on a canvas. */

import { setAttribute, setStyle } from '../lib/dom';
import type { ChartStyle } from '../chart/content';
import { SLOTS } from '../model/holders';
import type { Color } from '../model/metric';
import type { Level } from '../model/describe';

export interface Palette extends ChartStyle {
  lines: Record<Exclude<Color, number>, string>;
  /** Those that tell holders, GPUs or lines of one chart apart. */
  slots: readonly string[];
  /** What charts stand on. */
  card: string;
  /** Of a mark on the time axis. */
  levels: Record<Level, string>;
}

/** A color by its name or place. */
export function colorOf(palette: Palette, color: Color): string {
  return typeof color === 'number' ? (palette.slots[color % SLOTS] ?? palette.text) : palette.lines[color];
}

/** Paints an element in the color of a holder, or as memory of no holder. */
export function setPaint(element: HTMLElement, paint: number | string): void {
  setAttribute(element, 'data-paint', String(paint));
  setStyle(element, 'background', typeof paint === 'number' ? `var(--gpumon-process-${paint})` : '');
}

/** Reads the colors that hold for `root` just now; a change of theme needs another reading. */
export function readPalette(root: Element): Palette {
  const style = getComputedStyle(root);
  const color = (name: string): string => style.getPropertyValue(name).trim() || '#888';
  return {
    lines: {
      utilization: color('--gpumon-utilization'),
      memory: color('--gpumon-memory'),
      power: color('--gpumon-power'),
      temperature: color('--gpumon-temperature'),
      text: style.color,
    },
    slots: Array.from({ length: SLOTS }, (_, slot) => color(`--gpumon-process-${slot}`)),
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
