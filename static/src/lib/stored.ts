/** A choice that outlives the page. Storage may be forbidden, as in a private window; it then lasts as long as the page. */

export class Stored {
  private fallback: string | null = null;

  constructor(private readonly key: string) {}

  get(): string | null {
    try {
      return localStorage.getItem(this.key);
    } catch {
      return this.fallback;
    }
  }

  /** `null` forgets it. */
  set(value: string | null): void {
    this.fallback = value;
    try {
      if (value === null) {
        localStorage.removeItem(this.key);
      } else {
        localStorage.setItem(this.key, value);
      }
    } catch {
      // The fallback holds it.
    }
  }
}
