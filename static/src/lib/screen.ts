/**
 * Where elements are on the screen. Without a layout, as in a test, they have no width and are not
 * on it.
 */

/** Receives an element's width, at first and whenever it changes. Returns what ends that. */
export function observeWidth(element: Element, listener: (width_px: number) => void): () => void {
  if (typeof ResizeObserver === 'undefined') {
    return () => undefined;
  }
  const observer = new ResizeObserver(() => listener(element.clientWidth));
  observer.observe(element);
  return () => observer.disconnect();
}

/** Tells elements when they are scrolled into view, or out of it: only what is seen is drawn. */
export class ScreenObserver {
  private readonly listeners = new Map<Element, (onScreen: boolean) => void>();
  private readonly observer: IntersectionObserver | null;

  /** `margin` is how much further than the screen it looks. */
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
