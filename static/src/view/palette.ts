/** The colours of the style sheet, for drawing on a canvas. */

import type { Metric } from '../model/metric';
import type { Level } from '../model/words';

export interface Palette {
  lines: Record<Metric['colour'], string>;
  text: string;
  muted: string;
  grid: string;
  /** Of a mark on the time axis. */
  levels: Record<Level, string>;
  font: string;
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
    },
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
