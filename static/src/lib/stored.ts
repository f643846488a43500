/**
 * A choice that outlives the page. Storage may be forbidden, as in a private window, or full; it
 * then lasts as long as the page.
 */

export class Stored {
  /** What storage did not take. */
  private fallback: string | null = null;

  constructor(private readonly key: string) {}

  get(): string | null {
    try {
      return this.fallback ?? localStorage.getItem(this.key);
    } catch {
      return null;
    }
  }

  /** `null` forgets it. */
  set(value: string | null): void {
    this.fallback = null;
    try {
      if (value === null) {
        localStorage.removeItem(this.key);
      } else {
        localStorage.setItem(this.key, value);
      }
    } catch {
      this.fallback = value;
    }
  }
}
