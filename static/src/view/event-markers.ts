import type { EventMarker } from '../chart/content';
import { markedEvents } from '../model/event';
import type { Event } from '../wire';
import type { Palette } from './palette';

/** Events of each GPU, by its index, as markers on its charts. */
export function eventMarkers(events: readonly Event[], palette: Palette): ReadonlyMap<number, readonly EventMarker[]> {
  return new Map(
    [...markedEvents(events)].map(([gpu, marks]) => [
      gpu,
      marks.map(({ at_ms, level, text }) => ({ at_ms, color: palette.levels[level], label: text })),
    ]),
  );
}
