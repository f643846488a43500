import type { Chart } from '../chart/chart';

/** A chart, which converts positions on the screen to times. */
type TimeAxis = Pick<Chart, 'timeAt'>;

/** The time under the pointer, which all charts share. `null` means now. */
export class Cursor {
  private at: number | null = null;
  private place: { clientX: number; chart: TimeAxis } | null = null;

  constructor(private readonly changed: () => void) {}

  /** The time in milliseconds since the Unix epoch. */
  get at_ms(): number | null {
    return this.at;
  }

  /**
   * Follows the pointer over a chart. Returns a function that must be called when the chart is
   * removed.
   */
  track(host: HTMLElement, chart: TimeAxis): () => void {
    host.addEventListener('pointermove', ({ clientX }) => {
      this.place = { clientX, chart };
      this.updateTime();
    });
    const leave = (): void => {
      this.place = null;
      this.set(null);
    };
    host.addEventListener('pointerleave', leave);
    return () => {
      // If the chart is removed while the pointer is over it, the element receives no
      // `pointerleave` event.
      if (this.place?.chart === chart) {
        leave();
      }
    };
  }

  /** Recalculates the time after the chart under the pointer has moved. */
  updateTime(): void {
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
