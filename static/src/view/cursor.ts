import type { Chart } from '../chart/chart';

/** Converts points of the screen to times: a chart. */
type TimeAxis = Pick<Chart, 'timeAt'>;

/** The time that the pointer is at, the same in every chart; `null` means now. */
export class Cursor {
  private at: number | null = null;
  private place: { clientX: number; chart: TimeAxis } | null = null;

  constructor(private readonly changed: () => void) {}

  /** Milliseconds since the Unix epoch. */
  get at_ms(): number | null {
    return this.at;
  }

  /** Follows the pointer over a chart. Returns a function that ends this when the chart ends. */
  track(host: HTMLElement, chart: TimeAxis): () => void {
    host.addEventListener('pointermove', ({ clientX }) => {
      this.place = { clientX, chart };
      this.follow();
    });
    const leave = (): void => {
      this.place = null;
      this.set(null);
    };
    host.addEventListener('pointerleave', leave);
    return () => {
      // An element that is removed gets no `pointerleave`.
      if (this.place?.chart === chart) {
        leave();
      }
    };
  }

  /** The chart under the pointer shows another time now. */
  follow(): void {
    if (this.place !== null) {
      this.set(this.place.chart.timeAt(this.place.clientX));
    }
  }

  set(at_ms: number | null): void {
    if (this.at !== at_ms) {
      this.at = at_ms;
      this.changed();
    }
  }
}
