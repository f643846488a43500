/** Events of each GPU as markers on its charts. */

import type { EventMarker } from '../chart/content';
import { markedEvents } from '../model/event';
import type { Event } from '../wire';
import type { Palette } from './palette';

export class EventMarkers {
  private events: readonly Event[] | null = null;
  private palette: Palette | null = null;
  private markers = new Map<number, EventMarker[]>();

  /** By GPU. Events are rare beside drawings: markers are made again when there is another event, or another palette. */
  byGpu(events: readonly Event[], palette: Palette): ReadonlyMap<number, readonly EventMarker[]> {
    if (events !== this.events || palette !== this.palette) {
      this.events = events;
      this.palette = palette;
      this.markers = new Map(
        [...markedEvents(events)].map(([gpu, marks]) => [
          gpu,
          marks.map(({ at_ms, level, text }) => ({ at_ms, color: palette.levels[level], label: text })),
        ]),
      );
    }
    return this.markers;
  }
}
