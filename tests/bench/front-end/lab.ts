/** JupyterLab in a browser, with gpumon or with NVDashboard, which is called the peer. */

import type { Browser, CDPSession, Page } from 'playwright-core';

import { newPage } from '../../browser/src/browser';
import { JupyterServer } from '../../browser/src/jupyter';
import { Lab } from '../../browser/src/lab';
import { View } from '../../browser/src/view';
import { sleep } from './figures';
import type { Gpus } from './gpus';
import { tapStream } from './stream-tap';

const PEER_LAB = new URL('../../../target/nvdashboard/bin/jupyter-lab', import.meta.url).pathname;
export const PEER = 'NVDashboard 0.15';

/** The size of a desktop screen. */
const VIEWPORT = { width: 1920, height: 1080 };
/** A width at which the panel shows open cards with all charts. */
const PANEL_WIDTH_PX = 700;
/** Seconds to wait until JupyterLab has finished its own startup. */
const SETTLE_S = 3;

/** Commands that open more views of gpumon, if they exist. */
const DASHBOARDS = ['gpumon:open-dashboard'];

/** The part of JupyterLab's application that this file uses. */
interface JupyterApp {
  commands: {
    hasCommand: (id: string) => boolean;
    execute: (id: string, args: object) => Promise<unknown>;
  };
}

export function startGpumon(gpus: Gpus): Promise<JupyterServer> {
  return JupyterServer.start(gpus.environment, {
    arguments: ['--LabApp.expose_app_in_browser=True'],
  });
}

export function startPeer(gpus: Gpus): Promise<JupyterServer> {
  return JupyterServer.start(gpus.environment, { program: PEER_LAB });
}

/** A page with JupyterLab in which no view is open yet. */
export class OpenLab {
  private constructor(
    readonly page: Page,
    readonly cdp: CDPSession,
  ) {}

  /** Opens JupyterLab. `ask_ms` is the sample interval that the page requests from the server. */
  static async open(
    browser: Browser,
    jupyter: JupyterServer,
    ask_ms: number | null = null,
  ): Promise<OpenLab> {
    const { page } = await newPage(browser, { viewport: VIEWPORT });
    await page.addInitScript(tapStream, ask_ms);
    await page.goto(`${jupyter.pageUrl('lab')}&reset`);
    await page.locator('#jupyterlab-splash').waitFor({ state: 'detached' });
    await page.locator('[data-id="gpumon-panel"], [data-id="gpu-dashboard"]').first().waitFor();
    await sleep(SETTLE_S);
    return new OpenLab(page, await page.context().newCDPSession(page));
  }

  /** Shows the panel with all of its charts. */
  async showPanel(): Promise<void> {
    const lab = new Lab(this.page);
    await lab.showPanel();
    await lab.widenPanel(PANEL_WIDTH_PX);
    await new View(this.page).waitUntilLive();
  }

  /** Opens all other charts of gpumon. Returns whether there are any. */
  async showDashboards(): Promise<boolean> {
    const opened = await this.page.evaluate(async (ids) => {
      const { commands } = (window as unknown as { jupyterapp: JupyterApp }).jupyterapp;
      const there = ids.filter((id) => commands.hasCommand(id));
      for (const id of there) {
        await commands.execute(id, {});
      }
      return there.length;
    }, DASHBOARDS);
    await sleep(SETTLE_S);
    return opened > 0;
  }

  /**
   * Shows the chart of the peer whose button has the text `chart`. If `chart` is `null`, shows all
   * charts.
   */
  async showPeerChart(chart: string | null): Promise<void> {
    const buttons = this.page.locator('.gpu-dashboard-button:not(.gpu-dashboard-toolbar-button)');
    if (!(await buttons.first().isVisible())) {
      await this.page.locator('[data-id="gpu-dashboard"]').click();
    }
    await buttons.first().waitFor();
    for (const button of await buttons.all()) {
      if (chart === null || (await button.innerText()).trim() === chart) {
        await button.click();
      }
    }
    await this.page.locator('.recharts-wrapper').first().waitFor();
    await sleep(SETTLE_S);
  }

  async close(): Promise<void> {
    await this.page.context().close();
  }
}
