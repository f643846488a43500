import type { Chart } from '../chart/chart';

/** The time that the pointer is at, the same in every chart; `null` means now. */
export class Cursor {
  private at: number | null = null;

  constructor(private readonly changed: () => void) {}

  /** Milliseconds since the Unix epoch. */
  get at_ms(): number | null {
    return this.at;
  }

  /** Follows the pointer over a chart. */
  track(host: HTMLElement, chart: Chart): void {
    host.addEventListener('pointermove', ({ clientX }) => this.set(chart.timeAt(clientX)));
    host.addEventListener('pointerleave', () => this.set(null));
  }

  set(at_ms: number | null): void {
    if (this.at !== at_ms) {
      this.at = at_ms;
      this.changed();
    }
  }
}
