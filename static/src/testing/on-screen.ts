/** A screen that shows all elements, because jsdom has no layout. */

import { vi } from 'vitest';

/** Makes all elements count as visible until `vi.unstubAllGlobals` is called. */
export function showAllOnScreen(): void {
  vi.stubGlobal('ResizeObserver', Observer);
  vi.stubGlobal('IntersectionObserver', Observer);
}

class Observer {
  constructor(private readonly changed: (entries: object[]) => void) {}

  observe(target: Element): void {
    this.changed([{ target, isIntersecting: true, contentRect: { width: 0, height: 0 } }]);
  }

  unobserve = (): void => undefined;
  disconnect = this.unobserve;
}
