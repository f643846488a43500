/** The time that the pointer is at, the same in every chart; `null` means now. */
export class Cursor {
  private at: number | null = null;

  constructor(private readonly changed: () => void) {}

  /** Milliseconds since the Unix epoch. */
  get at_ms(): number | null {
    return this.at;
  }

  set(at_ms: number | null): void {
    if (this.at !== at_ms) {
      this.at = at_ms;
      this.changed();
    }
  }
}
