/** The colors of cells: one hue for each meaning, the darker or the lighter the more, so that no hues need be told apart. */

import { levelOf } from '../../../model/fleet/describe';
import { LOOKS, shareOf, type FleetMetric } from '../../../model/fleet/metric';
import type { Columns } from '../../../model/fleet/columns';
import { colorOf, type Palette } from '../../palette';

/** As many steps are told apart. */
export const STEPS = 20;

/** How a cell is drawn, as a number: a step of the scale, or one of these. */
export const LOOK = {
  missing: STEPS,
  unknown: STEPS + 1,
  lost: STEPS + 2,
  notice: STEPS + 3,
  warning: STEPS + 4,
  critical: STEPS + 5,
  calm: STEPS + 6,
} as const;

/** The marks of conditions in the corner of a cell, whatever its color tells. */
export const SEVERE = 3;

type Rgb = readonly [red: number, green: number, blue: number];

/** The colors of all steps. `parse` makes numbers of what the style sheet says. */
export function rampOf(
  palette: Palette,
  metric: FleetMetric,
  parse: (css: string) => Rgb,
): string[] {
  const card = parse(palette.card);
  const isDark = lightness(card) < 0.5;
  const color = parse(
    metric === 'conditions' ? palette.muted : colorOf(palette, LOOKS[metric].color),
  );
  const low = mixed(card, color, isDark ? 0.16 : 0.14);
  // The last third goes beyond the color itself: the fullest are told from the rather full.
  const high = mixed(color, isDark ? [255, 255, 255] : [10, 14, 30], isDark ? 0.42 : 0.45);
  return Array.from({ length: STEPS }, (_, step) => {
    const share = step / (STEPS - 1);
    const at =
      share < 0.66 ? mixed(low, color, share / 0.66) : mixed(color, high, (share - 0.66) / 0.34);
    return `rgb(${at.map(Math.round).join()})`;
  });
}

/** How a row is drawn. */
export function lookOf(columns: Columns, metric: FleetMetric, row: number): number {
  const state = columns.state[row];
  if (state === 'lost') {
    return LOOK.lost;
  }
  if (state === 'unknown' && columns.fleet.gpus.health[row] !== 'ok') {
    return LOOK.unknown;
  }
  if (metric === 'conditions') {
    const level = levelOf(columns.severity[row] ?? 0);
    return level === 'none' ? LOOK.calm : LOOK[level];
  }
  const share = shareOf(columns, metric, row);
  return Number.isNaN(share) ? LOOK.missing : Math.round(share * (STEPS - 1));
}

function mixed(from: Rgb, to: Rgb, share: number): Rgb {
  const part = (i: 0 | 1 | 2): number => from[i] + (to[i] - from[i]) * share;
  return [part(0), part(1), part(2)];
}

function lightness([red, green, blue]: Rgb): number {
  return (0.299 * red + 0.587 * green + 0.114 * blue) / 255;
}
