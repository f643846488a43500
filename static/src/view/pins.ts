/** What happened to each GPU, as marks on its charts. */

import type { Pin } from '../chart/content';
import { marksByGpu } from '../model/event';
import type { Event } from '../wire';
import type { Palette } from './palette';

export class Pins {
  private events: readonly Event[] | null = null;
  private palette: Palette | null = null;
  private byGpu = new Map<number, Pin[]>();

  /** By GPU. Events are rare beside drawings: they are looked at again when there is another one, or another palette. */
  of(events: readonly Event[], palette: Palette): ReadonlyMap<number, readonly Pin[]> {
    if (events !== this.events || palette !== this.palette) {
      this.events = events;
      this.palette = palette;
      this.byGpu = new Map(
        [...marksByGpu(events)].map(([gpu, marks]) => [
          gpu,
          marks.map(({ at_ms, level }) => ({ at_ms, color: palette.levels[level] })),
        ]),
      );
    }
    return this.byGpu;
  }
}
