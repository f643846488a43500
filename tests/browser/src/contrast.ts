/** Measurements of the contrast of texts. */

import type { Locator } from 'playwright-core';

/** Returns the WCAG 2 contrast of a text: 1 for equal colors, 21 for black on white. */
export async function contrastOf(text: Locator): Promise<number> {
  return text.evaluate((element) => {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    if (canvas === null) {
      throw new Error('no canvas');
    }
    // Drawing on a canvas converts every color format, and blends transparent colors.
    const paint = (colors: string[]): number[] => {
      canvas.clearRect(0, 0, 1, 1);
      for (const color of colors) {
        canvas.fillStyle = color;
        canvas.fillRect(0, 0, 1, 1);
      }
      return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const luminance = (rgb: number[]): number => {
      const [r = 0, g = 0, b = 0] = rgb.map((value) => {
        const share = value / 255;
        return share <= 0.040_45 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind: string[] = [];
    for (let at: Element | null = element; at !== null; at = at.parentElement) {
      behind.unshift(getComputedStyle(at).backgroundColor);
    }
    const background = ['white', ...behind];
    const [a, b] = [
      luminance(paint(background)),
      luminance(paint([...background, getComputedStyle(element).color])),
    ];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  });
}
