/**
 * The view from the perspective of a test: the attributes that it has for programs, and its visible
 * content.
 */

import type { JSHandle, Locator, Page } from 'playwright-core';
import { expect } from 'vitest';

/** A state of the view: the keyword for programs, and the visible text. */
interface RecordedState {
  state: string;
  text: string;
}

export class View {
  readonly root: Locator;
  readonly simulatedLabel: Locator;
  readonly status: Locator;
  readonly notice: Locator;

  constructor(private readonly page: Page) {
    this.root = page.getByTestId('gpumon');
    this.simulatedLabel = page.getByTestId('gpumon-simulated');
    this.status = page.getByTestId('gpumon-status');
    this.notice = page.getByTestId('gpumon-notice');
  }

  /** Waits until samples arrive and are displayed. */
  async waitUntilLive(): Promise<void> {
    await this.page.locator('[data-testid=gpumon][data-gpumon-state=live]').waitFor();
    await this.root.locator('[data-gpu-index]').first().waitFor();
  }

  /** Opens the header's menu, and returns the action with this ID. */
  async openMenuAction(id: string): Promise<Locator> {
    const action = this.root.getByTestId(id);
    if (!(await action.isVisible())) {
      await this.root.locator('.gpumon-head-menu > summary').press('Enter');
    }
    return action;
  }

  findCard(index: number): Locator {
    return this.root.locator(`[data-gpu-index="${index}"]`);
  }

  /** Returns the indexes of the visible GPUs, in the order in which they are displayed. */
  async gpuIndexes(): Promise<number[]> {
    const cards = await this.root.locator('[data-gpu-index]').filter({ visible: true }).all();
    return Promise.all(
      cards.map(async (card) => Number(await card.getAttribute('data-gpu-index'))),
    );
  }

  async readHealth(index: number): Promise<string | null> {
    return this.findCard(index).getAttribute('data-gpu-health');
  }

  /** Returns the displayed text of a reading. `id` is the reading's path in the sample. */
  async readValue(index: number, id: string): Promise<string> {
    return (
      await this.findCard(index).locator(`[data-reading="${id}"]`).first().innerText()
    ).trim();
  }

  /** Waits until a reading has changed. */
  async waitForChange(index: number, id: string): Promise<void> {
    await expect.poll(() => this.readValue(index, id)).toMatch(/\d/);
    const before = await this.readValue(index, id);
    await expect
      .poll(() => this.readValue(index, id), { message: `${id} stays ${before}` })
      .not.toBe(before);
  }

  /** Waits until the server has a history of this many seconds, so that charts are full. */
  async waitForHistory(seconds: number): Promise<void> {
    const remembered = (): Promise<number> =>
      this.page.evaluate(async () => {
        // On the standalone page, the stream's URL is relative to the page. In JupyterLab, the
        // stream is behind the proxy.
        const base = document.querySelector('#gpumon-panel') === null ? './' : '../gpumon/';
        const prefix = new URL(location.pathname.replace(/\/lab(\/.*)?$/, '/lab/'), location.href);
        const socket = new WebSocket(
          new URL(`${base}api/v1/stream`, prefix).href.replace(/^http/, 'ws'),
        );
        const hello = await new Promise<MessageEvent<string>>((resolve, reject) => {
          socket.onmessage = resolve;
          socket.onerror = reject;
        });
        socket.close();
        const { times_ms } = (JSON.parse(hello.data) as { history: { times_ms: number[] } })
          .history;
        return ((times_ms.at(-1) ?? 0) - (times_ms[0] ?? 0)) / 1000;
      });
    await expect
      .poll(remembered, { timeout: (seconds + 60) * 1000, interval: 2000 })
      .toBeGreaterThan(seconds);
  }

  /** Starts to record all states of the view, including short ones that polling would miss. */
  async recordStates(): Promise<StateRecord> {
    const seen = await this.root.evaluateHandle((root) => {
      const states: RecordedState[] = [];
      const record = (): void => {
        const status = root.querySelector<HTMLElement>('[data-testid=gpumon-status]');
        const text = status?.checkVisibility() === true ? status.innerText.trim() : '';
        states.push({ state: root.getAttribute('data-gpumon-state') ?? '', text });
      };
      new MutationObserver(record).observe(root, {
        attributes: true,
        attributeFilter: ['data-gpumon-state'],
        characterData: true,
        childList: true,
        subtree: true,
      });
      record();
      return states;
    });
    return new StateRecord(seen);
  }
}

export class StateRecord {
  constructor(private readonly seen: JSHandle<RecordedState[]>) {}

  /** Waits until the view has been in `state` with a text that matches `text`. */
  async waitForState(state: string, text: RegExp): Promise<void> {
    await expect
      .poll(() => this.listStates(), { message: `never "${state}" with ${text}` })
      .toContainEqual({ state, text: expect.stringMatching(text) as string });
  }

  /** Returns the recorded states without repetitions. */
  async listStates(): Promise<RecordedState[]> {
    const all = await this.seen.jsonValue();
    return all.filter(
      (seen, i) => seen.state !== all[i - 1]?.state || seen.text !== all[i - 1]?.text,
    );
  }
}
