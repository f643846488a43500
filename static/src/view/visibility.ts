/** Whether a part of a view is on the screen. One that is not is updated rarely, for programs that read the page. */

/** How often a part off the screen is updated. */
const UNSEEN_MS = 5000;

export class Visibility {
  onScreen = false;
  private turn = -1;

  /** Parts with different phases take turns, so that not all of them are written at once. */
  constructor(private readonly phase_ms = 0) {}

  /** Whether this update is skipped: off the screen, and not due. Without an IntersectionObserver, none is. */
  skips(now_ms: number): boolean {
    const turn = Math.floor((now_ms + this.phase_ms) / UNSEEN_MS);
    const skips =
      !this.onScreen && turn === this.turn && typeof IntersectionObserver !== 'undefined';
    this.turn = turn;
    return skips;
  }
}
