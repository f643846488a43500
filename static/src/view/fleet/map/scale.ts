/** The colors of cells. A metric has one hue that gets darker or lighter with the value; states have one each. */

import { levelOf } from '../../../model/fleet/describe';
import { isMeasured, shareOf, type FleetMetric } from '../../../model/fleet/metric';
import type { Columns } from '../../../model/fleet/columns';
import { colorOf, type Palette } from '../../palette';

/** The number of steps that can be distinguished. */
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
  free: STEPS + 7,
  idle: STEPS + 8,
  busy: STEPS + 9,
} as const;

/** The colors of states, from the style sheet. */
export type StateColors = Record<'free' | 'idle' | 'busy', string>;

type Rgb = readonly [red: number, green: number, blue: number];

/** The colors of all steps. `parse` returns the parts of a color of the style sheet. */
export function rampOf(
  palette: Palette,
  metric: FleetMetric,
  parse: (css: string) => Rgb,
): string[] {
  const card = parse(palette.card);
  const isDark = lightness(card) < 0.5;
  const color = parse(isMeasured(metric) ? colorOf(palette, metric) : palette.muted);
  const low = mixed(card, color, isDark ? 0.16 : 0.14);
  // The last third goes beyond the color itself, so that high values differ as well.
  const high = mixed(color, isDark ? [255, 255, 255] : [10, 14, 30], isDark ? 0.42 : 0.45);
  return Array.from({ length: STEPS }, (_, step) => {
    const share = step / (STEPS - 1);
    const at =
      share < 0.66 ? mixed(low, color, share / 0.66) : mixed(color, high, (share - 0.66) / 0.34);
    return `rgb(${at.map(Math.round).join()})`;
  });
}

export function stateColors(element: Element): StateColors {
  const style = getComputedStyle(element);
  const color = (name: string): string => style.getPropertyValue(`--_${name}`).trim() || '#888';
  return { free: color('free'), idle: color('idle'), busy: color('busy') };
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
  if (!isMeasured(metric)) {
    return state === undefined || state === 'unknown' ? LOOK.missing : LOOK[state];
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
