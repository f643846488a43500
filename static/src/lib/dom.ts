/**
 * Helpers for elements: changes of elements that Preact does not render, style sheets, observers of
 * sizes and positions, and a test for a dark background. Without layout, for example in a test,
 * elements count as having no width and being off the screen.
 */

/** Creates an element. Strings become text nodes, so that data can never become markup. */
export function createElement<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Sets the text of an element without child elements. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

/** Sets an attribute; `null` removes it. */
export function setAttribute(element: Element, name: string, value: string | null): void {
  if (value === null) {
    element.removeAttribute(name);
  } else if (element.getAttribute(name) !== value) {
    element.setAttribute(name, value);
  }
}

/** Shows or hides an element, also for screen readers. */
export function setShown(element: HTMLElement, shown: boolean): void {
  if (element.hidden === shown) {
    element.hidden = !shown;
  }
}

/** Sets a style through the CSSOM, which a strict content security policy allows. */
export function setStyle(element: HTMLElement, name: string, value: string): void {
  if (element.style.getPropertyValue(name) !== value) {
    element.style.setProperty(name, value);
  }
}

const adopted = new Set<string>();

/**
 * Adds a style sheet to the document once, in a way that a strict content security policy allows.
 */
export function addStyleSheetOnce(text: string): void {
  if (!adopted.has(text) && 'adoptedStyleSheets' in document) {
    adopted.add(text);
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    document.adoptedStyleSheets.push(sheet);
  }
}

/**
 * Calls `listener` with an element's width, first immediately and then after each change. A hidden
 * tab has a width of 0, which is ignored, so that elements keep their layout for the last visible
 * width. Returns a function that ends the observation.
 */
export function observeWidth(element: Element, listener: (width_px: number) => void): () => void {
  if (typeof ResizeObserver === 'undefined') {
    return () => undefined;
  }
  const observer = new ResizeObserver(() => {
    if (element.clientWidth > 0) {
      listener(element.clientWidth);
    }
  });
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

/**
 * Returns the perceived lightness of `rgb(...)` or `rgba(...)`, from 0 (black) to 1 (white), or
 * `null` if the color is transparent.
 */
function parseLightness(css: string): number | null {
  const parts = /^rgba?\(([^)]+)\)$/
    .exec(css.trim())?.[1]
    ?.split(/[\s,/]+/)
    .map(Number.parseFloat);
  if (parts === undefined || parts.length < 3 || parts.some(Number.isNaN) || parts[3] === 0) {
    return null;
  }
  const [red = 0, green = 0, blue = 0] = parts;
  return (0.299 * red + 0.587 * green + 0.114 * blue) / 255;
}

/** Returns whether the nearest opaque background behind `element` is dark. */
export function hasDarkBackground(element: Element): boolean {
  for (let at: Element | null = element; at !== null; at = at.parentElement) {
    const found = parseLightness(getComputedStyle(at).backgroundColor);
    if (found !== null) {
      return found < 0.5;
    }
  }
  return false;
}
