/** The server's clock as a client can know it, since the two machines may disagree about the time. */
export class ServerClock {
  private offset_ms = 0;

  constructor(private readonly localNow: () => number = Date.now) {}

  /** Learns from a frame that the server dated `at_ms`. The least delayed frame tells the most. */
  observe(at_ms: number): void {
    const seen_ms = at_ms - this.localNow();
    const jumped = Math.abs(seen_ms - this.offset_ms) > 3000;
    if (jumped || seen_ms > this.offset_ms) {
      this.offset_ms = seen_ms;
    }
  }

  now(): number {
    return this.localNow() + this.offset_ms;
  }
}
