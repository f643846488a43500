/**
 * Draws the views of a page at most once per animation frame, less often for live updates, and
 * never while they are hidden. All views are drawn in the same frame, so that they show the same
 * sample.
 *
 * A live update of eight GPUs takes 7 ms on the main thread, most of it for styles, layout and
 * paint. Ten updates per second would exceed the page's budget several times.
 */

/**
 * The minimum time between live updates. At up to four samples per second, every sample is drawn.
 */
const MIN_INTERVAL_MS = 240;
/** The share of a page's time that live updates may take, for all views together. */
const MAX_LOAD = 1 / 50;
/** The maximum time between live updates, so that one per second is always drawn. */
const MAX_INTERVAL_MS = 900;
/**
 * If updates arrive at most this far apart, a pending update is skipped in favor of the next one,
 * which arrives soon.
 */
const FAST_STREAM_MS = 150;
/**
 * Each view of the page receives the same update. Calls within this duration are therefore counted
 * as one update.
 */
const SAME_UPDATE_MS = 20;
/** The weight of the newest drawing in the average cost. */
const COST_WEIGHT = 0.25;

/** The state that all visible views share. */
class Page {
  readonly loops = new Set<FrameLoop>();
  private requested = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  /**
   * The moment at which a live update was last drawn. Drawings after user input or a clock tick are
   * not included, so they do not delay the next live update.
   */
  private live_ms = -Infinity;
  /** The arrival time of the last update. `apart_ms` is the time between the last two updates. */
  private came_ms = -Infinity;
  private apart_ms = Infinity;
  /** The average time of drawing all views, including the browser's work afterwards. */
  private cost_ms = 0;
  private isLive = false;

  /** Draws all views in the next frame. */
  requestDraw(): void {
    if (this.requested === 0) {
      clearTimeout(this.timer);
      this.timer = undefined;
      this.requested = requestAnimationFrame(() => this.draw());
    }
  }

  /** The minimum time between two drawings of live updates. */
  get interval_ms(): number {
    return Math.min(Math.max(this.cost_ms / MAX_LOAD, MIN_INTERVAL_MS), MAX_INTERVAL_MS);
  }

  /** Draws in the next frame, or later if the last live update was drawn too recently. */
  requestLiveDraw(): void {
    const now_ms = performance.now();
    this.isLive = true;
    if (now_ms - this.came_ms > SAME_UPDATE_MS) {
      this.apart_ms = now_ms - this.came_ms;
      this.came_ms = now_ms;
    }
    const left_ms = this.interval_ms - (now_ms - this.live_ms);
    if (left_ms <= 0) {
      this.requestDraw();
    } else if (this.requested === 0) {
      // In a fast stream, a newer update usually arrives after `left_ms`, and is then drawn instead
      // of the pending one. Therefore the timer waits longer, and draws the pending update only if
      // no further update arrives.
      const patience_ms = this.apart_ms <= FAST_STREAM_MS ? 2 * FAST_STREAM_MS : 0;
      this.timer ??= setTimeout(() => this.requestDraw(), left_ms + patience_ms);
    }
  }

  /**
   * Stops drawing when no view is visible. The measured cost is reset, because the next views may
   * have a different cost.
   */
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
    // The browser computes styles, layout and paint before this timer fires, so the measured time
    // includes them.
    setTimeout(() => {
      this.cost_ms += COST_WEIGHT * (performance.now() - begun_ms - this.cost_ms);
    });
  }
}

const page = new Page();

/** Returns the minimum time between two drawings of live updates, in milliseconds. */
export function liveInterval_ms(): number {
  return page.interval_ms;
}

/** Draws one view. */
export class FrameLoop {
  private dirty = false;

  constructor(private readonly draw: () => void) {}

  /** Draws the view in the next frame, after user input. */
  invalidate(): void {
    this.dirty = true;
    if (page.loops.has(this)) {
      page.requestDraw();
    }
  }

  /**
   * Draws the view after a live update: in the next frame, or later if the last live update was
   * drawn too recently.
   */
  invalidateThrottled(): void {
    this.dirty = true;
    if (page.loops.has(this)) {
      page.requestLiveDraw();
    }
  }

  /**
   * Starts or stops drawing. Changes that were made while drawing was stopped are drawn when it
   * starts again.
   */
  setRunning(running: boolean): void {
    if (running) {
      page.loops.add(this);
      if (this.dirty) {
        page.requestDraw();
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
        // An error in one view must not prevent drawing the others.
        reportError(error);
      }
    }
  }
}
