/**
 * Marks on the charts of each GPU: events as markers, and the steps of benchmark runs as bands
 * behind the lines.
 */

import type { EventMarker, Band } from '../chart/content';
import { plainText } from '../lib/text';
import { groupProblemEventsByGpu, marksOf } from '../model/event';
import type { Event } from '../wire';
import type { Palette } from './palette';

export interface Markers {
  byGpu: ReadonlyMap<number, readonly EventMarker[]>;
  ofAll: readonly EventMarker[];
}

export function eventMarkers(events: readonly Event[], palette: Palette): Markers {
  return {
    byGpu: new Map(
      [...groupProblemEventsByGpu(events)].map(([gpu, marks]) => [
        gpu,
        marks.map(({ at_ms, level, text }) => ({
          at_ms,
          color: palette.levels[level],
          label: text,
        })),
      ]),
    ),
    ofAll: marksOf(events).map(({ at_ms, text }) => ({ at_ms, color: palette.text, label: text })),
  };
}

/**
 * A step gets no band of its own if it starts within this time after the start of the previous
 * band. As a result, the first band of a run shows the run's title even if the first step starts
 * immediately.
 */
const MAX_FIRST_STEP_DELAY_MS = 1000;

/**
 * Returns the bands of each GPU. The band of a step that is still running extends to the current
 * time.
 */
export function runBands(
  events: readonly Event[],
  palette: Palette,
  now_ms: number,
): Map<number, Band[]> {
  const byGpu = new Map<number, Band[]>();
  const open = new Map<string, Band>();
  for (const event of events) {
    const gpu = event.gpu?.index;
    if (
      gpu === undefined ||
      (event.what !== 'run_began' && event.what !== 'run_step' && event.what !== 'run_ended')
    ) {
      continue;
    }
    const { at_ms, run, step, title, what } = event;
    const key = `${gpu} ${run}`;
    const before = open.get(key);
    if (
      what === 'run_step' &&
      before !== undefined &&
      at_ms - before.from_ms < MAX_FIRST_STEP_DELAY_MS
    ) {
      continue;
    }
    if (before !== undefined) {
      before.to_ms = at_ms;
    }
    if (what === 'run_ended' && before !== undefined) {
      continue;
    }
    const band = {
      from_ms: what === 'run_ended' ? -Infinity : at_ms,
      to_ms: what === 'run_ended' ? at_ms : now_ms,
      color: palette.levels.notice,
      label: plainText(what === 'run_step' ? (step ?? title) : title),
    };
    open.set(key, band);
    byGpu.set(gpu, [...(byGpu.get(gpu) ?? []), band]);
  }
  return byGpu;
}
