/**
 * Draws the views of a page at most once per animation frame, less often for live updates, and
 * never while hidden. All views are drawn in the same frame, so that they show the same sample.
 *
 * A live update of eight GPUs takes the main thread 7 ms, most of it in styles, layout and paint.
 * Ten a second would take twice the 4 % that a page may take.
 */

/** The least time between live updates; four samples a second are all drawn. */
const MIN_INTERVAL_MS = 240;
/** The share of a page's time that live updates may take, however many views there are. */
const MAX_LOAD = 1 / 50;
/** Once a second is always allowed. */
const MAX_INTERVAL_MS = 900;
/**
 * Where updates come this often, what is drawn is an update that has just come, not one that has
 * waited.
 */
const OFTEN_MS = 150;
/** Views of a page hear of the same update one after another. */
const SAME_MS = 20;
/** The weight of the newest drawing in the average cost. */
const WEIGHT = 0.25;

/** What the views that are shown have in common. */
class Page {
  readonly loops = new Set<FrameLoop>();
  private requested = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  /**
   * When a live update was drawn last. What somebody did, or a clock that went on, is no reason to
   * put off the next.
   */
  private live_ms = -Infinity;
  /** When an update came last, and how long after the one before. */
  private came_ms = -Infinity;
  private apart_ms = Infinity;
  /** What a drawing of all takes with all that the browser does after it, on average. */
  private cost_ms = 0;
  private isLive = false;

  /** Draws with the next frame. */
  request(): void {
    if (this.requested === 0) {
      clearTimeout(this.timer);
      this.timer = undefined;
      this.requested = requestAnimationFrame(() => this.draw());
    }
  }

  /** The least time between two drawings of live updates. */
  get interval_ms(): number {
    return Math.min(Math.max(this.cost_ms / MAX_LOAD, MIN_INTERVAL_MS), MAX_INTERVAL_MS);
  }

  /** Draws with the next frame, or once the last live update is long enough ago. */
  requestLive(): void {
    const now_ms = performance.now();
    this.isLive = true;
    if (now_ms - this.came_ms > SAME_MS) {
      this.apart_ms = now_ms - this.came_ms;
      this.came_ms = now_ms;
    }
    const left_ms = this.interval_ms - (now_ms - this.live_ms);
    if (left_ms <= 0) {
      this.request();
    } else if (this.requested === 0) {
      // Of a fast stream the next update is drawn that comes once this is over, unless none comes.
      const patience_ms = this.apart_ms <= OFTEN_MS ? 2 * OFTEN_MS : 0;
      this.timer ??= setTimeout(() => this.request(), left_ms + patience_ms);
    }
  }

  /** Nobody sees anything any more; what is shown next costs something else. */
  stop(): void {
    cancelAnimationFrame(this.requested);
    clearTimeout(this.timer);
    this.requested = 0;
    this.timer = undefined;
    this.live_ms = -Infinity;
    this.cost_ms = 0;
  }

  private draw(): void {
    this.requested = 0;
    const begun_ms = performance.now();
    if (this.isLive) {
      this.live_ms = begun_ms;
      this.isLive = false;
    }
    this.loops.forEach((loop) => loop.drawIfDirty());
    // Styles, layout and paint follow within the same task.
    setTimeout(() => {
      this.cost_ms += WEIGHT * (performance.now() - begun_ms - this.cost_ms);
    });
  }
}

const page = new Page();

/** Returns the least time between two drawings of live updates, in milliseconds. */
export function liveInterval_ms(): number {
  return page.interval_ms;
}

/** Draws one view. */
export class FrameLoop {
  private dirty = false;

  constructor(private readonly draw: () => void) {}

  /** Draws with the next frame, after user input. */
  invalidate(): void {
    this.dirty = true;
    if (page.loops.has(this)) {
      page.request();
    }
  }

  /**
   * There is something new: drawn with the next frame, unless the last drawing of such is but a
   * moment ago.
   */
  invalidateThrottled(): void {
    this.dirty = true;
    if (page.loops.has(this)) {
      page.requestLive();
    }
  }

  /** Starts or stops drawing; what changed meanwhile is drawn at the start. */
  setRunning(running: boolean): void {
    if (running) {
      page.loops.add(this);
      if (this.dirty) {
        page.request();
      }
    } else if (page.loops.delete(this) && page.loops.size === 0) {
      page.stop();
    }
  }

  drawIfDirty(): void {
    if (this.dirty) {
      this.dirty = false;
      try {
        this.draw();
      } catch (error) {
        // The other views are drawn all the same.
        reportError(error);
      }
    }
  }
}
