/** The events of each GPU as markers on its charts, and users' marks on all charts. */

import type { EventMarker } from '../chart/content';
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
