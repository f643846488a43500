/** Draws at most once per animation frame, less often for live updates, and never while hidden. */

/** Live updates are drawn no more often than this; samples that come four times a second all are. */
const MIN_INTERVAL_MS = 240;
/** The share of a page's time that live updates may take, however many views there are. */
const MAX_LOAD = 1 / 30;
/** Once a second is always allowed. */
const MAX_INTERVAL_MS = 900;
/** The weight of the newest drawing in the average cost. */
const WEIGHT = 0.25;

export class FrameLoop {
  /** How many share in that. */
  private static running = 0;
  private requested = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private drawn_ms = -Infinity;
  /** What a drawing takes with all that the browser does after it, on average. */
  private cost_ms = 0;
  private dirty = false;
  /** Whether there was user input since the last drawing. */
  private urgent = true;
  private running = false;

  /** `draw` is told whether somebody has done something, or only time has gone on. */
  constructor(private readonly draw: (urgent: boolean) => void) {}

  /** Draws with the next frame, after user input. */
  invalidate(): void {
    this.urgent = true;
    this.request();
  }

  /**
   * There is something new: drawn with the next frame, unless the last drawing is but a moment ago. Then the next news
   * is drawn, which is more recent; and where none comes, this.
   */
  invalidateThrottled(): void {
    const since_ms = performance.now() - this.drawn_ms;
    const interval_ms = Math.min(
      Math.max((this.cost_ms * FrameLoop.running) / MAX_LOAD, MIN_INTERVAL_MS),
      MAX_INTERVAL_MS,
    );
    if (since_ms >= interval_ms) {
      this.request();
      return;
    }
    this.dirty = true;
    if (this.running && this.requested === 0 && this.timer === undefined) {
      this.timer = setTimeout(
        () => {
          this.timer = undefined;
          this.request();
        },
        2 * interval_ms - since_ms,
      );
    }
  }

  /** Starts or stops drawing; what changed meanwhile is drawn at the start. */
  setRunning(running: boolean): void {
    FrameLoop.running += Number(running) - Number(this.running);
    this.running = running;
    if (running) {
      if (this.dirty) {
        this.request();
      }
    } else {
      cancelAnimationFrame(this.requested);
      clearTimeout(this.timer);
      this.requested = 0;
      this.timer = undefined;
    }
  }

  private request(): void {
    this.dirty = true;
    if (this.running && this.requested === 0) {
      clearTimeout(this.timer);
      this.timer = undefined;
      this.requested = requestAnimationFrame(() => {
        this.requested = 0;
        this.dirty = false;
        this.drawn_ms = performance.now();
        const { urgent, drawn_ms } = this;
        this.urgent = false;
        this.draw(urgent);
        // Styles, layout and paint follow within the same task.
        setTimeout(() => {
          this.cost_ms += WEIGHT * (performance.now() - drawn_ms - this.cost_ms);
        });
      });
    }
  }
}
