/** A dashboard from the perspective of a test. */

import type { Locator, Page } from 'playwright-core';

const TIME_RANGE = '.gpumon-controls summary[aria-label^="Time range"]';

export class Charts {
  readonly root: Locator;

  constructor(private readonly page: Page) {
    this.root = page.getByTestId('gpumon-dashboard');
  }

  /** Waits until samples arrive and charts are drawn. */
  async waitUntilLive(): Promise<void> {
    await this.page.locator('[data-testid=gpumon-dashboard][data-gpumon-state=live]').waitFor();
    await this.root.locator('[data-plot] canvas').first().waitFor();
  }

  /** Returns the names of the charts in order. */
  async chartNames(): Promise<string[]> {
    const plots = await this.root.locator('[data-plot]').all();
    return Promise.all(plots.map(async (plot) => (await plot.getAttribute('data-plot')) ?? ''));
  }

  findPlot(key: string): Locator {
    return this.root.locator(`[data-plot="${key}"]`);
  }

  /** Returns the values in the legend of a chart, with ordinary spaces. */
  async readLegend(key: string): Promise<string[]> {
    const all = await this.findPlot(key).locator('.gpumon-readouts > button').allInnerTexts();
    return all.map((text) => text.replaceAll('\u00a0', ' ').replaceAll(/\s*\n\s*/g, ' '));
  }

  /** Returns the announced span of paused charts, or an empty text while charts are live. */
  async pausedSpan(): Promise<string> {
    const said = await this.root.locator('.gpumon-head [role=status]').innerText();
    return /^Charts paused: (.*)$/.exec(said)?.[1] ?? '';
  }

  /** Returns the button with the text `words`. */
  findButton(words: string | RegExp): Locator {
    return this.root.getByRole('button', { name: words, exact: true });
  }

  /** Opens the toolbar menu whose name starts with `name`. */
  async openMenu(name: string): Promise<void> {
    await this.root.locator(`.gpumon-controls summary[aria-label^="${name}"]`).click();
  }

  /** Returns the time range in the toolbar, such as `5 min`. */
  async timeRange(): Promise<string> {
    const text = await this.root.locator(TIME_RANGE).innerText();
    return text.replaceAll('\u00a0', ' ').replace('▾', '').trim();
  }

  /** Selects a time range from the menu of the toolbar. */
  async chooseTimeRange(words: RegExp): Promise<void> {
    await this.root.locator(TIME_RANGE).click();
    await this.findButton(words).click();
  }

  /**
   * Returns the share of pixel columns of a chart in which a line is drawn. Only columns between
   * two horizontal positions count, which are given as shares of the chart's width.
   */
  async shareOfDrawnColumns(key: string, [from, to]: [number, number]): Promise<number> {
    return this.findPlot(key)
      .locator('canvas')
      .evaluate(
        (canvas: HTMLCanvasElement, [begin, end]) => {
          const context = canvas.getContext('2d');
          const left = Math.round(canvas.width * begin);
          const width = Math.max(1, Math.round(canvas.width * (end - begin)));
          const { data } = context?.getImageData(left, 0, width, canvas.height) ?? { data: [] };
          const columns = new Set<number>();
          for (let i = 0; i < data.length; i += 4) {
            const [red = 0, green = 0, blue = 0, alpha = 0] = [
              data[i],
              data[i + 1],
              data[i + 2],
              data[i + 3],
            ];
            // Lines have colors, while axes and labels are gray.
            if (alpha > 200 && Math.max(red, green, blue) - Math.min(red, green, blue) > 60) {
              columns.add((i / 4) % width);
            }
          }
          return columns.size / width;
        },
        [from, to] as const,
      );
  }
}
