/** JupyterLab from a user's perspective. */

import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';

/**
 * Waits until the notebook on the page has an idle kernel. If a cell is run earlier, JupyterLab
 * starts a second kernel and ends the first one.
 */
export async function waitForIdleKernel(page: Page): Promise<void> {
  // A toolbar that was laid out early may hide both elements. So the function only waits until they
  // exist.
  const state = 'attached';
  await page
    .locator('.jp-Toolbar-kernelName', { hasNotText: 'No Kernel' })
    .first()
    .waitFor({ state });
  await page
    .locator('.jp-Notebook-ExecutionIndicator[data-status=idle]')
    .first()
    .waitFor({ state });
}

/** Runs a code cell by keyboard, and waits until it has started. */
export async function runCell(page: Page, index = 0): Promise<void> {
  const cell = page.locator('.jp-CodeCell').nth(index);
  const prompt = cell.locator('.jp-InputPrompt');
  const before = await prompt.innerText();
  const begin = async (): Promise<boolean> => {
    await cell.locator('.cm-content').click();
    await page.keyboard.press('Control+Enter');
    // The key press is repeated, because a page that is still starting ignores keys. Each attempt
    // waits before the next one, because a busy page handles keys late and must not receive them
    // twice.
    const begun = prompt.filter({ hasNotText: before }).waitFor({ timeout: MAX_HANDLING_MS });
    return begun.then(
      () => true,
      () => false,
    );
  };
  await expect.poll(begin, { message: `cell ${index} does not run` }).toBe(true);
}

/** If a key press or click has had no effect for this long, it is repeated. */
const MAX_HANDLING_MS = 5000;

export class Lab {
  readonly panel: Locator;
  private readonly tab: Locator;

  constructor(private readonly page: Page) {
    this.panel = page.locator('#gpumon-panel');
    this.tab = page.locator('.jp-SideBar.jp-mod-left [data-id="gpumon-panel"]');
  }

  /** Opens JupyterLab, and waits until its layout is complete. */
  async open(url: string): Promise<void> {
    await this.page.goto(url);
    await this.waitUntilReady();
  }

  async waitUntilReady(): Promise<void> {
    await this.tab.waitFor();
    await this.page.locator('#jupyterlab-splash').waitFor({ state: 'detached' });
  }

  /** Shows the panel by a click on its tab, and waits until JupyterLab has stored the layout. */
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
    await this.waitUntilReady();
  }

  /** Selects a theme such as `JupyterLab Dark` in the settings menu. */
  async selectTheme(name: string): Promise<void> {
    await this.selectMenuItem('Settings', 'Theme', name);
  }

  /** Selects an item of a menu in the menu bar. */
  async selectMenuItem(name: string, submenu: string, label: string): Promise<void> {
    const item = (text: string): Locator =>
      this.page.locator('.lm-Menu .lm-Menu-item', { hasText: text }).first();
    const choose = async (): Promise<boolean> => {
      try {
        await this.page
          .locator('.lm-MenuBar-item', { hasText: name })
          .click({ timeout: MAX_HANDLING_MS });
        await item(submenu).hover({ timeout: MAX_HANDLING_MS });
        await item(label).click({ timeout: MAX_HANDLING_MS });
        return true;
      } catch {
        await this.page.keyboard.press('Escape');
        return false;
      }
    };
    // A page that is still starting closes its menus, so the selection is repeated.
    await expect.poll(choose, { message: `the menu does not offer "${label}"` }).toBe(true);
  }

  /** Drags the edge of the left sidebar until the panel has this width. */
  async widenPanel(width_px: number): Promise<void> {
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
  async runCommand(name: string): Promise<void> {
    const input = this.page.locator('.lm-CommandPalette-input');
    const item = this.page.locator('.lm-CommandPalette-item', { hasText: name }).first();
    const run = async (): Promise<boolean> => {
      try {
        if (!(await input.isVisible())) {
          await this.page.keyboard.press('Control+Shift+c');
        }
        await input.fill(name, { timeout: MAX_HANDLING_MS });
        await item.click({ timeout: MAX_HANDLING_MS });
        return true;
      } catch {
        return false;
      }
    };
    // A page that is still starting ignores keys, and closes the palette when a notebook receives
    // the focus. Therefore the command is repeated.
    await expect.poll(run, { message: `the palette does not offer "${name}"` }).toBe(true);
  }
}
