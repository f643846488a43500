// @vitest-environment jsdom
import { makeCellRun, type CellCost, type StoredCost } from '@gpumon/page/cells';
import type { Feed } from '@gpumon/page/feed';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';

vi.mock('@jupyterlab/apputils', () => ({ showErrorMessage: vi.fn() }));

import { CellLines } from './cell-costs';
import type { NotebookPanel } from './notebook-panel';
import { removeStoredCosts } from './stored-costs';

const COST: CellCost = {
  started_ms: 0,
  ended_ms: 5000,
  duration_s: 5,
  gpus: [0],
  gpu_s: 1,
  peak_memory_bytes: 2 ** 30,
  memory_change_bytes: 0,
  energy_joules: 100,
  shared: false,
  limits: null,
};
const STORED_COST: StoredCost = {
  version: 1,
  duration_s: 4,
  gpu_s: 1,
  peak_memory_bytes: 2 ** 30,
  memory_change_bytes: 0,
  energy_joules: 100,
  shared: false,
  gpus: ['NVIDIA H200'],
  run: makeCellRun('train()', 3, null),
};
/** A measured run that has the same execution count as the cell. */
const RUN = { cost: COST, running: false, count: 3 };

const STORED_LABELS: Record<string, string> = { last: 'stored ', earlier: 'earlier ' };

/** A test replacement for a JupyterLab cell. It counts how often the cell's metadata is changed. */
class Cell {
  readonly node = document.createElement('div');
  changes = 0;
  source = 'train()';
  readonly model;

  constructor(id: string, metadata: Record<string, unknown> = {}, type = 'code') {
    this.model = {
      id,
      type,
      executionCount: 3 as number | null,
      sharedModel: { getSource: () => this.source },
      metadata,
      getMetadata: (key: string): unknown => structuredClone(metadata[key]),
      setMetadata: (key: string, value: unknown): void => {
        this.changes += JSON.stringify(metadata[key]) === JSON.stringify(value) ? 0 : 1;
        metadata[key] = value;
      },
      deleteMetadata: (key: string): void => {
        this.changes += 1;
        Reflect.deleteProperty(metadata, key);
      },
    };
  }

  get line(): string | null {
    const line = this.node.querySelector('.gpumon-cell-line');
    return line === null
      ? null
      : `${STORED_LABELS[line.getAttribute('data-stored') ?? ''] ?? ''}${readLineText(line)}`;
  }
}

function readLineText(line: Element): string {
  const seen = [
    ...line.querySelectorAll(
      '[data-cost=elapsed], [data-cost=elapsed] ~ .gpumon-cell-was:not([hidden])',
    ),
  ];
  return seen.map((element) => element.textContent.replaceAll('\u00a0', ' ')).join(' ');
}

let cells: Cell[];
let changed: (() => void)[];
let settings: { cellLine: boolean; storeCosts: boolean };
let lines: CellLines;

/** Opens a notebook whose kernel never starts and whose connection never reaches a server. */
async function openNotebook(...all: Cell[]): Promise<void> {
  cells = all;
  const panel = {
    context: {
      model: {
        contentChanged: {
          connect: (slot: () => void) => changed.push(slot),
          disconnect: () => (changed = []),
        },
      },
    },
    sessionContext: { ready: new Promise(() => undefined) },
    content: {
      get widgets() {
        return cells;
      },
    },
  } as unknown as NotebookPanel;
  const feed: unknown = {};
  lines = new CellLines(panel, {
    feed: () => Promise.resolve(feed as Feed),
    settings: () => settings,
  });
  await vi.advanceTimersByTimeAsync(0);
}

async function emitContentChange(): Promise<void> {
  changed.forEach((slot) => slot());
  await vi.advanceTimersByTimeAsync(1000);
}

beforeEach(() => {
  vi.useFakeTimers();
  changed = [];
  settings = { cellLine: true, storeCosts: true };
});
afterEach(() => {
  lines.dispose();
  vi.useRealTimers();
});

it('stored costs appear without kernel or server', async () => {
  await openNotebook(
    new Cell('a', { gpumon: STORED_COST }),
    new Cell('b'),
    new Cell('c', { gpumon: STORED_COST }, 'markdown'),
  );
  expect(cells.map(({ line }) => line)).toEqual(['stored 4.00 s', null, null]);
  expect(cells.map(({ changes }) => changes)).toEqual([0, 0, 0]);
});

it('finished run is compared with cost it replaced', async () => {
  const cell = new Cell('a', { gpumon: STORED_COST, tags: ['x'] });
  await openNotebook(cell);
  lines.onStarted('a');
  expect(cell.line).toBe('stored 4.00 s');
  lines.onMeasured('a', { ...RUN, running: true });
  lines.onEnded('a', { ...STORED_COST, duration_s: 5 });
  await emitContentChange();
  expect(cell.line).toBe('5.00 s was 4.00 s');
  expect(cell.model.metadata).toEqual({ gpumon: { ...STORED_COST, duration_s: 5 }, tags: ['x'] });
  // The next run takes as long as the previous run, so the line shows no comparison.
  lines.onStarted('a');
  lines.onMeasured('a', { ...RUN, running: true });
  lines.onEnded('a', { ...STORED_COST, duration_s: 5 });
  expect([cell.line, cell.changes]).toEqual(['5.00 s', 1]);
});

it('run without cost removes the stored cost', async () => {
  const cell = new Cell('a', { gpumon: STORED_COST, tags: ['x'] });
  await openNotebook(cell, new Cell('b'));
  for (const { model } of cells) {
    lines.onStarted(model.id);
    lines.onEnded(model.id, null);
  }
  expect(cells.map(({ line, changes }) => [line, changes])).toEqual([
    [null, 1],
    [null, 0],
  ]);
  expect(cell.model.metadata).toEqual({ tags: ['x'] });
});

it('costs are stored only if setting is enabled', async () => {
  settings.storeCosts = false;
  const cell = new Cell('a', { gpumon: STORED_COST });
  await openNotebook(cell);
  lines.onStarted('a');
  lines.onMeasured('a', RUN);
  lines.onEnded('a', { ...STORED_COST, duration_s: 5 });
  // The line compares the new run with the stored cost of the previous run.
  expect([cell.line, cell.model.metadata]).toEqual(['5.00 s was 4.00 s', {}]);
  lines.onStarted('a');
  lines.onEnded('a', null);
  expect([cell.line, cell.changes]).toEqual([null, 1]);
});

it('stored cost of another run is labeled "earlier"', async () => {
  await openNotebook(
    ...['a', 'b', 'c', 'd', 'e'].map((id) => new Cell(id, { gpumon: STORED_COST })),
  );
  const [unchanged, edited, runElsewhere, cleared, timed] = cells;
  if (edited && runElsewhere && cleared && timed) {
    edited.source = 'train(epochs=2)';
    runElsewhere.model.executionCount = 4;
    cleared.model.executionCount = null;
    timed.model.setMetadata('execution', { 'iopub.execute_input': '2026-11-28T06:00:00Z' });
  }
  await emitContentChange();
  expect(unchanged?.line).toBe('stored 4.00 s');
  for (const cell of [edited, runElsewhere, cleared, timed]) {
    expect(cell?.line).toBe('earlier 4.00 s');
  }
  if (edited) {
    edited.source = 'train()';
  }
  await emitContentChange();
  expect(edited?.line).toBe('stored 4.00 s');
});

it('run on another page replaces the displayed cost', async () => {
  const cell = new Cell('a', { gpumon: STORED_COST });
  await openNotebook(cell);
  lines.onMeasured('a', RUN);
  await emitContentChange();
  expect(cell.line).toBe('5.00 s');
  cell.model.executionCount = 4;
  await emitContentChange();
  expect(cell.line).toBe('earlier 4.00 s');
  // After a reload, the page also reports the measured cost of the earlier run. The line must not
  // change.
  lines.onMeasured('a', RUN);
  expect(cell.line).toBe('earlier 4.00 s');
});

it('cost is stored even if lines are disabled', async () => {
  settings.cellLine = false;
  const cell = new Cell('a', { gpumon: STORED_COST });
  await openNotebook(cell);
  lines.onStarted('a');
  lines.onMeasured('a', RUN);
  lines.onEnded('a', { ...STORED_COST, duration_s: 5 });
  expect([cell.line, cell.changes]).toEqual([null, 1]);
});

it('lines follow moved cells and external changes', async () => {
  await openNotebook(
    new Cell('a', { gpumon: STORED_COST }),
    new Cell('b'),
    new Cell('c', { gpumon: 'not a cost' }),
  );
  lines.onStarted('b');
  lines.onMeasured('b', RUN);
  // JupyterLab creates a new widget for a cell that is moved.
  cells = [
    new Cell('b'),
    new Cell('a', { gpumon: STORED_COST }),
    new Cell('c', { gpumon: 'not a cost' }),
  ];
  await emitContentChange();
  expect(cells.map(({ line }) => line)).toEqual(['5.00 s', 'stored 4.00 s', null]);
  removeStoredCosts({ content: { widgets: cells } } as unknown as NotebookPanel);
  await emitContentChange();
  expect(cells.map(({ line }) => line)).toEqual(['5.00 s', null, null]);
  expect(cells.map(({ model }) => model.metadata)).toEqual([{}, {}, {}]);
});
