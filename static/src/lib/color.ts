/** Colors of computed styles. */

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
export function isOnDark(element: Element): boolean {
  for (let at: Element | null = element; at !== null; at = at.parentElement) {
    const found = parseLightness(getComputedStyle(at).backgroundColor);
    if (found !== null) {
      return found < 0.5;
    }
  }
  return false;
}
