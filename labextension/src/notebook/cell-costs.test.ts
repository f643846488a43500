// @vitest-environment jsdom
import type { KernelCost } from '@gpumon/page/cells';
import type { Feed } from '@gpumon/page/feed';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';

vi.mock('@jupyterlab/apputils', () => ({ showErrorMessage: vi.fn() }));

import { makeKernelCost } from '../../../static/src/testing/kernel-cost';
import { NOW } from '../../../static/src/testing/frames';
import { CellCosts, type CellCostListener } from './cell-costs';
import type { NotebookPanel } from './notebook-panel';

type Slot = (...args: unknown[]) => void;

const slots: Record<string, Slot> = {};
const signal = (name: string): unknown => ({
  connect: (slot: Slot) => (slots[name] = slot),
  disconnect: () => undefined,
});
const kernel = { id: 'k', anyMessage: signal('message') };

/** The requests that the server received. The functions in `answers` respond to them. */
let asked: URL[];
let answers: ((cost: KernelCost | null) => void)[];
let posted: unknown[];
let reports: unknown[];
let costs: CellCosts;
let receive: (frame: { type: string }) => void;
let feed: { store: { sample: { at_ms: number } | null } };
/** The executions that were recorded for the charts. */
let put: unknown[];

function recordRequest(path: string, init?: RequestInit): Promise<Response> {
  if (init?.method === 'POST') {
    posted.push(JSON.parse(init.body as string));
    return Promise.resolve(Response.json({}));
  }
  asked.push(new URL(path, 'http://localhost/'));
  return new Promise((resolve) => {
    answers.push((cost) =>
      resolve(cost === null ? new Response('', { status: 404 }) : Response.json(cost)),
    );
  });
}

beforeEach(() => {
  [asked, answers, posted, reports, put] = [[], [], [], [], []];
  const cells = {
    attachStorage: () => undefined,
    executions: [],
    put: (execution: unknown) => put.push(execution),
  };
  const subscribe = (listener: typeof receive): unknown => {
    receive = listener;
    return { update: () => undefined, unsubscribe: () => undefined };
  };
  const known = { store: { sample: null, cells }, options: { request: recordRequest }, subscribe };
  feed = known;
  const listener: CellCostListener = {
    onStarted: (cellId) => reports.push(['started', cellId]),
    onMeasured: (cellId, { cost, running }) => reports.push([cellId, cost.energy_joules, running]),
    onEnded: (cellId, cost) =>
      reports.push(['ended', cellId, cost?.energy_joules ?? null, cost?.run?.execution_count]),
  };
  const session = {
    path: 'a/train.ipynb',
    session: { kernel },
    kernelChanged: signal('kernel'),
    statusChanged: signal('status'),
  };
  const panel = { sessionContext: session, content: { widgets: [] } };
  costs = new CellCosts(panel as unknown as NotebookPanel, known as unknown as Feed, listener);
});

afterEach(() => costs.dispose());

function sendMessage(type: string, at_ms: number): void {
  const msg = {
    header: { msg_type: type, msg_id: 'run', date: new Date(at_ms).toISOString() },
    parent_header: { msg_id: 'run' },
    metadata: { cellId: 'c' },
    content: { code: 'train()', execution_count: 3, status: 'ok' },
  };
  slots.message?.(kernel, { direction: type === 'execute_request' ? 'send' : 'recv', msg });
}

function startCell(): void {
  sendMessage('execute_request', NOW);
  sendMessage('execute_input', NOW);
}

function sendSamples(...seconds: number[]): void {
  for (const second of seconds) {
    feed.store.sample = { at_ms: NOW + second * 1000 };
    receive({ type: 'sample' });
  }
}

async function respondToNext(cost: KernelCost | null): Promise<void> {
  answers.shift()?.(cost);
  await new Promise((resolve) => setTimeout(resolve, 5));
}

const energy = (most: number): KernelCost =>
  makeKernelCost({ energy_joules: { least: 0, most, estimate: most } });

it('ended cell causes one request', async () => {
  startCell();
  sendMessage('execute_reply', NOW + 5000);
  expect(asked.map(({ search }) => search)).toEqual([
    `?kernel_id=k&from_ms=${NOW}&to_ms=${NOW + 5000}`,
  ]);
  await respondToNext(energy(100));
  expect(reports).toEqual([
    ['started', 'c'],
    ['c', 100, false],
    ['ended', 'c', 100, 3],
  ]);
  expect(posted).toMatchObject([{ notebook: 'train.ipynb', kernel_id: 'k', joules: 100 }]);
  expect(put).toMatchObject([{ cellId: 'c', running: false }]);
});

it('running cell causes one request per second', async () => {
  startCell();
  sendSamples(0.5, 1.2, 1.4);
  expect(asked.map(({ search }) => search)).toEqual([`?kernel_id=k&from_ms=${NOW}`]);
  await respondToNext(energy(20));
  sendSamples(2.3);
  expect(asked).toHaveLength(2);
  sendMessage('execute_reply', NOW + 2500);
  // This response belongs to a request that was sent before the run ended, so the cost in the
  // response must be ignored.
  await respondToNext(energy(40));
  await respondToNext(energy(50));
  expect(reports).toEqual([
    ['started', 'c'],
    ['c', 20, true],
    ['c', 50, false],
    ['ended', 'c', 100, 3],
  ]);
});

it('run without observed end does not store cost', async () => {
  startCell();
  sendSamples(1.2);
  await respondToNext(energy(20));
  slots.status?.(null, 'dead');
  await respondToNext(energy(30));
  expect(reports.slice(2)).toEqual([['c', 30, false]]);
});

it('run without GPU removes the stored cost', async () => {
  startCell();
  sendMessage('execute_reply', NOW + 5000);
  await respondToNext(makeKernelCost({ gpus: [] }));
  expect(reports).toEqual([
    ['started', 'c'],
    ['ended', 'c', null, undefined],
  ]);
});

it('latest cost is kept if the server fails', async () => {
  startCell();
  sendSamples(1.2);
  await respondToNext(energy(20));
  sendMessage('execute_reply', NOW + 2000);
  await respondToNext(null);
  expect(reports.slice(1)).toEqual([
    ['c', 20, true],
    ['c', 20, false],
  ]);
  startCell();
  sendMessage('execute_reply', NOW + 4000);
  await respondToNext(null);
  expect(reports.slice(3)).toEqual([['started', 'c']]);
});
