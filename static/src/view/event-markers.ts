/** Events of each GPU as markers on its charts, and what people marked on all charts. */

import type { EventMarker } from '../chart/content';
import { markedEvents, marksOf } from '../model/event';
import type { Event } from '../wire';
import type { Palette } from './palette';

export interface Markers {
  byGpu: ReadonlyMap<number, readonly EventMarker[]>;
  ofAll: readonly EventMarker[];
}

export class EventMarkers {
  private events: readonly Event[] | null = null;
  private palette: Palette | null = null;
  private markers: Markers = { byGpu: new Map(), ofAll: [] };

  /** Events are rare beside drawings: markers are made again when there is another event, or another palette. */
  of(events: readonly Event[], palette: Palette): Markers {
    if (events !== this.events || palette !== this.palette) {
      this.events = events;
      this.palette = palette;
      this.markers = {
        byGpu: new Map(
          [...markedEvents(events)].map(([gpu, marks]) => [
            gpu,
            marks.map(({ at_ms, level, text }) => ({ at_ms, color: palette.levels[level], label: text })),
          ]),
        ),
        ofAll: marksOf(events).map(({ at_ms, text }) => ({ at_ms, color: palette.text, label: text })),
      };
    }
    return this.markers;
  }
}
