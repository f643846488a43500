/**
 * The server's clock as a client can know it, since the two machines may disagree about the time.
 */
export class ServerClock {
  private offset_ms = 0;
  private pinned_ms: number | null = null;

  constructor(private readonly localNow: () => number = Date.now) {}

  /** Learns from a frame that the server dated `at_ms`. The least delayed frame tells the most. */
  observe(at_ms: number): void {
    const seen_ms = at_ms - this.localNow();
    const jumped = Math.abs(seen_ms - this.offset_ms) > 3000;
    if (jumped || seen_ms > this.offset_ms) {
      this.offset_ms = seen_ms;
    }
  }

  /**
   * Stands still at this time: that of a recording, which may be played at any speed. `null` lets
   * it go.
   */
  pin(at_ms: number | null): void {
    this.pinned_ms = at_ms;
  }

  now(): number {
    return this.pinned_ms ?? this.localNow() + this.offset_ms;
  }
}
