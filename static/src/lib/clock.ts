/** An estimate of the server's clock, because the clocks of server and client may differ. */
export class ServerClock {
  private offset_ms = 0;
  private pinned_ms: number | null = null;

  constructor(private readonly localNow: () => number = Date.now) {}

  /**
   * Updates the estimate from a frame that the server sent at `at_ms`. The frame with the shortest
   * delay gives the best estimate.
   */
  observeFrameTime(at_ms: number): void {
    const seen_ms = at_ms - this.localNow();
    const jumped = Math.abs(seen_ms - this.offset_ms) > 3000;
    if (jumped || seen_ms > this.offset_ms) {
      this.offset_ms = seen_ms;
    }
  }

  /**
   * Stops the clock at the time of a recording, which may be played at any speed. `null` releases
   * the clock.
   */
  pinTime(at_ms: number | null): void {
    this.pinned_ms = at_ms;
  }

  now(): number {
    return this.pinned_ms ?? this.localNow() + this.offset_ms;
  }
}
