// @vitest-environment jsdom
import { h, render as renderComponent } from 'preact';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import '../../testing/dialog';
import { gpusOf } from '../../model/gpu';
import { Store } from '../../model/store';
import { makeHello, NOW } from '../../testing/frames';
import { CATALOGUE, ITEMS, makeRunResult, makeRunState, makeRequestMock } from '../../testing/runs';
import type { RunState } from '../../wire';
import { RunEntry } from '../dialog-entries';

let store: Store;
let isOpen = false;
let request: ReturnType<typeof makeRequestMock>;
const element = document.createElement('div');
const setRuns = vi.fn();

async function open(
  answers: Record<string, unknown> = { 'api/v1/catalogue': CATALOGUE },
): Promise<void> {
  request = makeRequestMock(answers);
  document.body.replaceChildren(element);
  setOpen(true);
  await vi.waitFor(() => expect(request).toHaveBeenCalled());
  await vi.waitFor(() => expect(find('.gpumon-run-list')).not.toBeNull());
  await flushAndRender();
}

async function flushAndRender(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve));
  render();
}

function setOpen(open: boolean): void {
  isOpen = open;
  render();
}

function render(): void {
  const gpus = gpusOf(store.inventory, store.sample, store.details);
  const props = {
    store,
    runner: { request, setRuns },
    gpus,
    freshness: { now_ms: NOW, stale: false },
    isOpen,
    onClose: () => setOpen(false),
  };
  renderComponent(h(RunEntry, props), element);
}

function find(selector: string): HTMLElement | null {
  return element.querySelector<HTMLElement>(selector);
}

function submit(): void {
  element.querySelector('form')?.requestSubmit();
}

function typeQuery(text: string): void {
  const input = element.querySelector('input');
  if (input !== null) {
    input.value = text;
    input.dispatchEvent(new Event('input'));
  }
  render();
}

function press(key: string): void {
  find('input')?.dispatchEvent(
    new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }),
  );
  render();
}

/** Returns the titles of the visible benchmarks, and the title of the selected one. */
function shownBenchmarks(): [string[], string | undefined] {
  const titles = [...element.querySelectorAll('[role=option]')];
  const title = (option?: Element): string | undefined =>
    option?.querySelector('.gpumon-run-title')?.textContent;
  const chosen = titles.find((option) => option.getAttribute('aria-selected') === 'true');
  expect(find('input')?.getAttribute('aria-activedescendant')).toBe(chosen?.id ?? null);
  return [titles.map((option) => title(option) ?? ''), title(chosen)];
}

function chooseDevice(key: string): void {
  const select = element.querySelector('select');
  if (select !== null) {
    select.value = key;
    select.dispatchEvent(new Event('change'));
  }
  render();
}

/** Returns whether another run can be started. */
function canStart(): boolean {
  return element.querySelector<HTMLButtonElement>('.gpumon-primary')?.disabled === false;
}

function sendState(state: RunState): void {
  store.apply({ type: 'run', ...state });
  render();
}

beforeEach(() => {
  renderComponent(null, element);
  store = new Store();
  store.apply(makeHello());
});
afterEach(() => {
  setRuns.mockReset();
});

it('closed dialog does not request run states', async () => {
  await open();
  expect(setRuns).toHaveBeenLastCalledWith(true);
  expect(element.querySelector('dialog')?.open).toBe(true);
  expect(document.activeElement).toBe(find('input'));
  element.querySelector('dialog')?.close();
  expect(setRuns).toHaveBeenLastCalledWith(false);
  expect(element.querySelector('dialog')?.open).toBe(false);
  setOpen(true);
  find('.gpumon-run-close')?.click();
  expect(element.querySelector('dialog')?.open).toBe(false);
});

it('presets are first, and search finds all benchmarks', async () => {
  await open();
  expect(shownBenchmarks()).toEqual([
    ['Memory bandwidth', 'PCIe transfers', 'Out-of-memory demo', 'triad', 'copy', 'a: sum'],
    'Memory bandwidth',
  ]);
  typeQuery('sum TEACHES');
  expect(shownBenchmarks()).toEqual([['a: sum'], 'a: sum']);
  typeQuery('fills');
  expect(shownBenchmarks()).toEqual([['Out-of-memory demo'], 'Out-of-memory demo']);
  typeQuery('zzz');
  expect(shownBenchmarks()).toEqual([[], undefined]);
  const none = 'No benchmark matches the search.';
  expect(element.textContent).toContain(none);
  expect(canStart()).toBe(false);
  chooseDevice('cpu');
  typeQuery('pcie');
  expect(shownBenchmarks()).toEqual([['PCIe transfers'], undefined]);
  expect(element.textContent).not.toContain(none);
  expect(canStart()).toBe(false);
});

it('reopened dialog requests a missing catalog again', async () => {
  await open({});
  expect(shownBenchmarks()).toEqual([[], undefined]);
  element.querySelector('dialog')?.close();
  request.mockImplementation(makeRequestMock({ 'api/v1/catalogue': CATALOGUE }));
  for (const calls of [2, 2]) {
    setOpen(true);
    await flushAndRender();
    expect(shownBenchmarks()[1]).toBe('Memory bandwidth');
    expect(request).toHaveBeenCalledTimes(calls);
    element.querySelector('dialog')?.close();
  }
});

it('arrow keys skip benchmarks without their device', async () => {
  await open();
  press('ArrowDown');
  expect(shownBenchmarks()[1]).toBe('PCIe transfers');
  chooseDevice('cpu');
  expect(shownBenchmarks()[1]).toBe('Memory bandwidth');
  press('ArrowUp');
  expect(shownBenchmarks()[1]).toBe('Memory bandwidth');
  press('ArrowDown');
  expect(shownBenchmarks()[1]).toBe('Out-of-memory demo');
  const pcie = [...element.querySelectorAll<HTMLElement>('[role=option]')][1];
  expect(pcie?.textContent).toContain('needs a GPU');
  pcie?.click();
  render();
  expect(shownBenchmarks()[1]).toBe('Out-of-memory demo');
});

it('start sends the job with the required header', async () => {
  await open({ 'api/v1/catalogue': CATALOGUE, 'api/v1/runs': { id: 'r1' } });
  typeQuery('triad');
  press('ArrowDown');
  submit();
  const [path, init] = request.mock.lastCall ?? [];
  expect([path, init?.method, init?.headers]).toEqual([
    'api/v1/runs',
    'POST',
    { 'X-Gpumon': 'run' },
  ]);
  expect(JSON.parse(init?.body as string)).toMatchObject({ kind: 'bench', ids: ['triad'] });
});

it('refusal is shown before anything starts', async () => {
  await open({
    'api/v1/catalogue': { ...CATALOGUE, refusal: 'only the user who started this server may' },
  });
  expect(find('[role=status]:not([aria-live])')?.textContent).toContain(
    'only the user who started this server may',
  );
  expect(canStart()).toBe(false);
  submit();
  expect(request).toHaveBeenCalledTimes(1);
});

it('server error or missing response is shown', async () => {
  await open();
  submit();
  await flushAndRender();
  expect(find('[role=alert]')?.textContent).toBe('runs are off: use --allow-runs');
  request.mockRejectedValueOnce(new TypeError('no network'));
  submit();
  await flushAndRender();
  expect(find('[role=alert]')?.textContent).toContain('is not responding');
});

it('running benchmark shows progress and can be canceled', async () => {
  await open({ 'api/v1/catalogue': CATALOGUE, 'api/v1/runs/r1': {} });
  const scroll = vi.spyOn(HTMLElement.prototype, 'scrollIntoView');
  sendState(makeRunState());
  sendState(makeRunState());
  expect(scroll.mock.contexts).toEqual([find('.gpumon-run')]);
  scroll.mockRestore();
  expect(find('.gpumon-run-step')?.textContent).toBe('triad, 1 of 2: measuring');
  expect(element.querySelector('progress')?.value).toBe(0.25);
  expect(find('[data-reading="power.draw_watts"]')?.textContent).toMatch(/\d/);
  expect(canStart()).toBe(false);
  expect(find('[aria-live]')?.textContent).toBe('triad: running');
  find('.gpumon-run button')?.click();
  expect(request.mock.lastCall).toEqual([
    'api/v1/runs/r1',
    { method: 'DELETE', headers: { 'X-Gpumon': 'run' } },
  ]);
  sendState(makeRunState({ status: 'canceled', ended_ms: NOW }));
  expect(find('[aria-live]')?.textContent).toBe('triad: canceled');
  expect(canStart()).toBe(true);
});

it('dialog cannot cancel a run in a terminal', async () => {
  await open();
  sendState(makeRunState({ own: false }));
  expect(find('.gpumon-run button')).toBeNull();
  expect(canStart()).toBe(true);
});

it('results appear one by one, or are fetched', async () => {
  await open({
    'api/v1/catalogue': CATALOGUE,
    'api/v1/runs/r1': { ...makeRunState(), all: ITEMS },
  });
  const first = { item: 'result', ...makeRunResult() } as const;
  sendState(makeRunState({ items: 1, newest: first }));
  expect(find('td[data-column=rate]')?.textContent).toMatch(/^4,020/);
  expect(request).toHaveBeenCalledTimes(1);
  sendState(makeRunState({ items: ITEMS.length, newest: ITEMS.at(-1) ?? null }));
  await flushAndRender();
  expect(request.mock.lastCall?.[0]).toBe('api/v1/runs/r1');
  expect(element.querySelectorAll('.gpumon-run-table tbody tr')).toHaveLength(2);
  expect(element.querySelectorAll('.gpumon-run-items > li')).toHaveLength(ITEMS.length - 2);
  expect(find('td[data-column=last] .gpumon-visually-hidden')?.textContent).toContain(
    'There is no previous result',
  );
});

it('result is compared with the run before', async () => {
  await open();
  const result = (bytes_per_second: number): RunState['newest'] => ({
    item: 'result',
    ...makeRunResult({ bytes_per_second }),
  });
  sendState(
    makeRunState({
      run: 'r0',
      status: 'done',
      started_ms: NOW - 9000,
      ended_ms: NOW,
      items: 1,
      newest: result(4e12),
    }),
  );
  sendState(makeRunState({ items: 1, newest: result(4.4e12) }));
  expect(find('[data-run=r1] td[data-column=last]')?.textContent).toContain('(+10.0\u00a0%)');
  expect(find('.gpumon-run-left')?.textContent).toBe('');
  const step = { number: 1, id: 'triad', phase: 'measuring', since_ms: NOW } as const;
  sendState(makeRunState({ items: 1, newest: result(4.4e12), step, share: 0 }));
  expect(find('.gpumon-run-left')?.textContent).toBe('about 3\u00a0s left');
});

it('two selected runs are compared, and exported', async () => {
  const saved: string[] = [];
  vi.stubGlobal('URL', {
    createObjectURL: (blob: Blob) => `blob:${blob.type}`,
    revokeObjectURL: vi.fn(),
  });
  vi.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(function (
    this: HTMLAnchorElement,
  ) {
    saved.push(`${this.download} ${this.getAttribute('href') ?? ''}`);
  });
  await open();
  for (const [run, rate] of Object.entries({ r0: 4e12, r1: 4.4e12 })) {
    const newest = { item: 'result', ...makeRunResult({ bytes_per_second: rate }) } as const;
    sendState(
      makeRunState({
        run,
        status: 'done',
        started_ms: NOW - 9000 + rate / 1e9,
        ended_ms: NOW,
        items: 1,
        newest,
      }),
    );
  }
  const chip = (name: string): HTMLButtonElement | undefined =>
    [...element.querySelectorAll('button')].find(({ textContent }) => textContent === name);
  const choices = [...element.querySelectorAll<HTMLInputElement>('input[type=checkbox]')];
  for (const choice of choices) {
    expect(find('.gpumon-run-compared')?.children).toHaveLength(0);
    choice.click();
    render();
  }
  const cells = [...(find('.gpumon-run-compared tbody')?.querySelectorAll('td') ?? [])];
  expect(cells.map(({ textContent }) => textContent.replaceAll('\u00a0', ' '))).toEqual([
    '4,000 GB/s',
    '4,400 GB/s',
    '+10.0 %',
  ]);
  chip('CSV')?.click();
  chip('JSON')?.click();
  expect(saved).toEqual([
    'gpumon-benchmarks.csv blob:text/csv',
    'gpumon-benchmarks.json blob:application/json',
  ]);
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

it('simulated GPUs are not offered as devices', async () => {
  const given = store.inventory;
  expect(given).not.toBeNull();
  if (given !== null) {
    store.apply({
      type: 'inventory',
      ...given,
      platform: { ...given.platform, source: 'simulated' },
    });
  }
  await open();
  const devices = [...(find('[aria-label=Device]')?.children ?? [])].map(
    ({ textContent }) => textContent,
  );
  expect(devices).toEqual(['CPU']);
  const note = find('[role=status]:not([aria-live])')?.textContent;
  expect(note).toContain('cannot run on simulated GPUs');
  expect(shownBenchmarks()[1]).toBe('Memory bandwidth');
  expect(canStart()).toBe(true);
});

it('markup in messages is shown as text', async () => {
  const item = { item: 'said', topic: 'cure', text: '<img src=x>\u202e' } as const;
  await open();
  sendState(
    makeRunState({ title: '<b>bold</b>', items: 1, newest: item, error: '<i>', status: 'failed' }),
  );
  expect(element.querySelector('img, i, .gpumon-run-title b')).toBeNull();
  expect(find('.gpumon-run-items')?.textContent).toContain('<img src=x>\ufffd');
});
