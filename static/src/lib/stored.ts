/**
 * A setting that survives a reload of the page. If storage is full or forbidden, for example in a
 * private window, the setting lasts as long as the page.
 */

export class StoredValue {
  /** The value that could not be stored. */
  private fallback: string | null = null;

  constructor(private readonly key: string) {}

  get(): string | null {
    try {
      return this.fallback ?? localStorage.getItem(this.key);
    } catch {
      return null;
    }
  }

  /** Stores a value; `null` removes it. */
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
