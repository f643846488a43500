/** The colours of the style sheet, for drawing on a canvas. */

import type { ChartStyle } from '../chart/chart';
import { SLOTS } from '../model/holders';
import type { Colour } from '../model/metric';
import type { Level } from '../model/words';

export interface Palette extends ChartStyle {
  lines: Record<Exclude<Colour, number>, string>;
  /** Those that tell holders, GPUs or lines of one chart apart. */
  slots: readonly string[];
  /** Of a mark on the time axis. */
  levels: Record<Level, string>;
}

/** A colour by its name or place. */
export function colourOf(palette: Palette, colour: Colour): string {
  return typeof colour === 'number' ? (palette.slots[colour % SLOTS] ?? palette.text) : palette.lines[colour];
}

/** Reads the colours that hold for `root` just now; a change of theme needs another reading. */
export function readPalette(root: Element): Palette {
  const style = getComputedStyle(root);
  const colour = (name: string): string => style.getPropertyValue(name).trim() || '#888';
  return {
    lines: {
      utilization: colour('--gpumon-utilization'),
      memory: colour('--gpumon-memory'),
      power: colour('--gpumon-power'),
      temperature: colour('--gpumon-temperature'),
      text: style.color,
    },
    slots: Array.from({ length: SLOTS }, (_, slot) => colour(`--gpumon-process-${String(slot)}`)),
    text: style.color,
    muted: colour('--gpumon-axis'),
    grid: colour('--gpumon-grid'),
    levels: {
      quiet: colour('--gpumon-axis'),
      note: colour('--gpumon-note'),
      warn: colour('--gpumon-wait'),
      act: colour('--gpumon-act'),
    },
    font: style.fontFamily,
  };
}
