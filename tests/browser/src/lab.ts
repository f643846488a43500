/** JupyterLab as somebody uses it. */

import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';

/**
 * Waits until the notebook on the page has its kernel, and that is idle. A cell that is run earlier makes JupyterLab
 * start a second kernel and end the one that was there.
 */
export async function kernelReady(page: Page): Promise<void> {
  await page.locator('.jp-Toolbar-kernelName', { hasNotText: 'No Kernel' }).first().waitFor();
  await page.locator('.jp-Notebook-ExecutionIndicator[data-status=idle]').waitFor();
}

export class Lab {
  readonly panel: Locator;
  private readonly tab: Locator;

  constructor(private readonly page: Page) {
    this.panel = page.locator('#gpumon-panel');
    this.tab = page.locator('.jp-SideBar.jp-mod-left [data-id="gpumon-panel"]');
  }

  /** Opens JupyterLab and waits until it has put its parts where they belong. */
  async open(url: string): Promise<void> {
    await this.page.goto(url);
    await this.ready();
  }

  async ready(): Promise<void> {
    await this.tab.waitFor({ timeout: 60_000 });
    await this.page.locator('#jupyterlab-splash').waitFor({ state: 'detached', timeout: 60_000 });
  }

  /** Shows the panel by its tab, and waits until JupyterLab has stored that. */
  async showPanel(): Promise<void> {
    const stored = this.page.waitForRequest(
      (request) =>
        request.method() === 'PUT' &&
        request.url().includes('/api/workspaces') &&
        (request.postData() ?? '').includes('"current":"gpumon-panel"'),
    );
    await this.tab.click();
    await this.panel.waitFor();
    await (await stored).response();
  }

  async reload(): Promise<void> {
    await this.page.reload();
    await this.ready();
  }

  /** Chooses a theme in the settings menu, as `JupyterLab Dark`. */
  async theme(name: string): Promise<void> {
    const item = (label: string): Locator => this.page.locator('.lm-Menu .lm-Menu-item', { hasText: label }).first();
    await this.page.locator('.lm-MenuBar-item', { hasText: 'Settings' }).click();
    await item('Theme').hover();
    await item(name).click();
  }

  /** Drags the edge of the left side bar until it is so wide. */
  async widen(width_px: number): Promise<void> {
    const edge = await this.panel.boundingBox();
    if (edge === null) {
      throw new Error('the panel is not shown');
    }
    const [x, y] = [edge.x + edge.width + 2, edge.y + edge.height / 2];
    await this.page.mouse.move(x, y);
    await this.page.mouse.down();
    await this.page.mouse.move(x + width_px - edge.width, y, { steps: 5 });
    await this.page.mouse.up();
  }

  /** Runs a command by its name in the palette. */
  async command(name: string): Promise<void> {
    const input = this.page.locator('.lm-CommandPalette-input');
    const item = this.page.locator('.lm-CommandPalette-item', { hasText: name }).first();
    const run = async (): Promise<boolean> => {
      try {
        if (!(await input.isVisible())) {
          await this.page.keyboard.press('Control+Shift+c');
        }
        await input.fill(name, { timeout: 1000 });
        await item.click({ timeout: 1000 });
        return true;
      } catch {
        return false;
      }
    };
    // A page that still starts loses keys, and closes the palette when a notebook takes the focus.
    await expect.poll(run, { timeout: 30_000, message: `the palette does not offer "${name}"` }).toBe(true);
  }
}
