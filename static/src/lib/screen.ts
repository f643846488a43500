/**
 * Observers of element sizes and positions. Without layout, for example in a test, elements have no
 * width and are not on the screen.
 */

/**
 * Calls `listener` with an element's width, first immediately and then after each change. Returns a
 * function that ends the observation.
 */
export function observeWidth(element: Element, listener: (width_px: number) => void): () => void {
  if (typeof ResizeObserver === 'undefined') {
    return () => undefined;
  }
  const observer = new ResizeObserver(() => listener(element.clientWidth));
  observer.observe(element);
  return () => observer.disconnect();
}

/**
 * Notifies when elements are scrolled into or out of view, so that only visible elements are drawn.
 */
export class ScreenObserver {
  private readonly listeners = new Map<Element, (onScreen: boolean) => void>();
  private readonly observer: IntersectionObserver | null;

  /** `margin` extends the screen, so that elements near it are also reported. */
  constructor(margin = '0px') {
    const changed = (entries: readonly IntersectionObserverEntry[]): void => {
      for (const { target, isIntersecting } of entries) {
        this.listeners.get(target)?.(isIntersecting);
      }
    };
    const isSupported = typeof IntersectionObserver !== 'undefined';
    this.observer = isSupported ? new IntersectionObserver(changed, { rootMargin: margin }) : null;
  }

  observe(element: Element, listener: (onScreen: boolean) => void): void {
    this.listeners.set(element, listener);
    this.observer?.observe(element);
  }

  unobserve(element: Element): void {
    this.listeners.delete(element);
    this.observer?.unobserve(element);
  }

  disconnect(): void {
    this.observer?.disconnect();
  }
}
