// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import { gpusOf } from '../../model/gpu';
import { Store } from '../../model/store';
import { hello, NOW } from '../../testing/frames';
import { CATALOGUE, ITEMS, runResult, runState, serverWith } from '../../testing/runs';
import type { RunState } from '../../wire';
import { RunEntry } from '../run-entry';

let store: Store;
let entry: RunEntry;
let request: ReturnType<typeof serverWith>;
const setRuns = vi.fn();

async function open(answers: Record<string, unknown> = { 'api/v1/catalogue': CATALOGUE }): Promise<void> {
  request = serverWith(answers);
  entry = new RunEntry(store, { request, setRuns }, render);
  document.body.replaceChildren(entry.button, entry.element);
  entry.button.click();
  await vi.waitFor(() => expect(request).toHaveBeenCalled());
  await vi.waitFor(() => expect(find('.gpumon-run-list')).not.toBeNull());
  await settled();
}

async function settled(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve));
  render();
}

function render(): void {
  const gpus = gpusOf(store.inventory, store.sample, store.details);
  entry.render(gpus, { now_ms: NOW, stale: false });
}

function find(selector: string): HTMLElement | null {
  return entry.element.querySelector<HTMLElement>(selector);
}

function submit(): void {
  entry.element.querySelector('form')?.requestSubmit();
}

/** Whether another run can be started. */
function isReady(): boolean {
  return entry.element.querySelector<HTMLButtonElement>('.gpumon-run-start')?.disabled === false;
}

function tell(state: RunState): void {
  store.apply({ type: 'run', ...state });
  render();
}

beforeEach(() => {
  store = new Store();
  store.apply(hello());
});
afterEach(() => {
  setRuns.mockReset();
});

it('asks for nothing until it is opened, and for no more when it is closed', async () => {
  await open();
  expect(setRuns).toHaveBeenLastCalledWith(true);
  expect(entry.button.getAttribute('aria-expanded')).toBe('true');
  expect(document.activeElement).toBe(find('select'));
  find('select')?.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }));
  expect(setRuns).toHaveBeenLastCalledWith(false);
  expect(entry.element.hidden).toBe(true);
  expect(document.activeElement).toBe(entry.button);
});

it('starts what is chosen, with the header that no other page can send', async () => {
  await open({ 'api/v1/catalogue': CATALOGUE, 'api/v1/runs': { id: 'r1' } });
  expect(find('[data-testid=gpumon-run-does]')?.textContent).toBe('Does it. Teaches it.');
  submit();
  const [path, init] = request.mock.lastCall ?? [];
  expect([path, init?.method, init?.headers]).toEqual(['api/v1/runs', 'POST', { 'X-Gpumon': 'run' }]);
  expect(JSON.parse(init?.body as string)).toMatchObject({ kind: 'bench', ids: ['triad'] });
});

it('says what the server says when it refuses, and that it does not answer', async () => {
  await open();
  submit();
  await settled();
  expect(find('[role=alert]')?.textContent).toBe('runs are off: use --allow-runs');
  request.mockRejectedValueOnce(new TypeError('no network'));
  submit();
  await settled();
  expect(find('[role=alert]')?.textContent).toContain('is not responding');
});

it('shows how far a run is, what its GPU does, and cancels it', async () => {
  await open({ 'api/v1/catalogue': CATALOGUE, 'api/v1/runs/r1': {} });
  tell(runState());
  expect(find('.gpumon-run-step')?.textContent).toBe('triad, 1 of 2: measuring');
  expect(entry.element.querySelector('progress')?.value).toBe(0.25);
  expect(find('[data-reading="power.draw_watts"]')?.textContent).toMatch(/\d/);
  expect(isReady()).toBe(false);
  expect(find('[aria-live]')?.textContent).toBe('triad: running');
  find('.gpumon-run button')?.click();
  expect(request.mock.lastCall).toEqual(['api/v1/runs/r1', { method: 'DELETE', headers: { 'X-Gpumon': 'run' } }]);
  tell(runState({ status: 'cancelled', ended_ms: NOW }));
  expect(find('[aria-live]')?.textContent).toBe('triad: canceled');
  expect(isReady()).toBe(true);
});

it('a terminal keeps its run to itself, and nobody from another', async () => {
  await open();
  tell(runState({ own: false }));
  expect(find('.gpumon-run button')?.hidden).toBe(true);
  expect(isReady()).toBe(true);
});

it('shows each result as it comes, and fetches what it has missed', async () => {
  await open({ 'api/v1/catalogue': CATALOGUE, 'api/v1/runs/r1': { ...runState(), all: ITEMS } });
  const first = { item: 'result', ...runResult() } as const;
  tell(runState({ items: 1, newest: first }));
  expect(find('.gpumon-run-part')?.textContent).toMatch(/^4,020/);
  expect(request).toHaveBeenCalledTimes(1);
  tell(runState({ items: ITEMS.length, newest: ITEMS.at(-1) ?? null }));
  await settled();
  expect(request.mock.lastCall?.[0]).toBe('api/v1/runs/r1');
  expect(entry.element.querySelectorAll('.gpumon-run-items > li')).toHaveLength(ITEMS.length);
  expect(find('.gpumon-run-part .gpumon-visually-hidden')?.textContent).toContain('not known');
});

it('runs nothing on simulated GPUs, and says so', async () => {
  const given = store.inventory;
  expect(given).not.toBeNull();
  if (given !== null) {
    store.apply({ type: 'inventory', ...given, platform: { ...given.platform, source: 'simulated' } });
  }
  await open();
  const devices = (): string[] =>
    [...(find('[aria-label=Device]')?.children ?? [])].map(({ textContent }) => textContent);
  expect(devices()).toEqual(['CPU']);
  const what = entry.element.querySelector('select');
  if (what !== null) {
    what.value = '1';
  }
  render();
  expect(devices()).toEqual([]);
  expect(isReady()).toBe(false);
  expect(find('[role=status]:not([aria-live])')?.textContent).toContain('Simulated devices');
});

it('what a stranger says is text', async () => {
  const item = { item: 'said', topic: 'cure', text: '<img src=x>\u202e' } as const;
  await open();
  tell(runState({ title: '<b>bold</b>', items: 1, newest: item, error: '<i>', status: 'failed' }));
  expect(entry.element.querySelector('img, i, .gpumon-run-title b')).toBeNull();
  expect(find('.gpumon-run-items')?.textContent).toContain('<img src=x>\ufffd');
});
