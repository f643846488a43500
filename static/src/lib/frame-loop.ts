/** At most one drawing per frame of the screen, fewer of what only time has changed, and none while nobody looks. */

/** Nobody reads numbers that change more often; samples that come four times a second are all drawn. */
const CALM_MS = 240;

export class FrameLoop {
  private requested = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private drawn_ms = -Infinity;
  private dirty = false;
  /** Whether somebody has done something since the last drawing. */
  private urgent = true;
  private running = false;

  /** `draw` is told whether somebody has done something, or only time has gone on. */
  constructor(private readonly draw: (urgent: boolean) => void) {}

  /** Somebody has done something, and sees it with the next frame. */
  invalidate(): void {
    this.urgent = true;
    this.request();
  }

  /**
   * There is something new: drawn with the next frame, unless the last drawing is but a moment ago. Then the next news
   * is drawn, which is more recent; and where none comes, this.
   */
  invalidateCalmly(): void {
    const since_ms = performance.now() - this.drawn_ms;
    if (since_ms >= CALM_MS) {
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
        2 * CALM_MS - since_ms,
      );
    }
  }

  /** Starts or stops drawing; what changed meanwhile is drawn at the start. */
  setRunning(running: boolean): void {
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
        const { urgent } = this;
        this.urgent = false;
        this.draw(urgent);
      });
    }
  }
}
