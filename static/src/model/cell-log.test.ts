import { describe, expect, it, vi } from 'vitest';

import { LIMIT_SUMMARY } from '../testing/frames';
import type { Event } from '../wire';
import {
  selectAndSortByCost,
  CellLog,
  executionName,
  createNotebookNamer,
  executionsFromHistory,
  type CellExecution,
} from './cell-log';
import { sendCellCost } from './cell-cost';
import type { Request } from './request';

function makeRun(key: string, gpu_s: number | null, gpus: number[] = [0]): CellExecution {
  const cost = {
    started_ms: 0,
    ended_ms: 5000,
    duration_s: 5,
    gpus,
    gpu_s,
    peak_memory_bytes: 1,
    memory_change_bytes: 0,
    energy_joules: 1,
    shared: false,
    limits: null,
  };
  return {
    key,
    kernelId: 'k',
    cellId: 'c',
    notebook: 'a.ipynb',
    path: 'w/a.ipynb',
    count: 3,
    code: '',
    running: false,
    cost,
  };
}

function newStorage(): {
  stored: Map<string, string>;
  storage: Pick<Storage, 'getItem' | 'setItem'>;
} {
  const stored = new Map<string, string>();
  const storage = {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, text: string) => void stored.set(key, text),
  };
  return { stored, storage };
}

describe('cell history of the server', () => {
  it('cell costs are sent to server without code', async () => {
    const request = vi.fn<Request>(() => Promise.resolve(Response.json({}, { status: 201 })));
    const own = { ...makeRun('a', 1.5), code: 'secret' };
    await sendCellCost(
      { ...own, cost: { ...own.cost, started_ms: 10.4, ended_ms: 5000.6 } },
      request,
    );
    const [path, init] = request.mock.lastCall ?? [];
    expect([path, init?.method, init?.headers]).toEqual([
      'api/v1/cells',
      'POST',
      { 'X-Gpumon': 'run' },
    ]);
    const sentCell = JSON.parse(init?.body as string) as Extract<Event, { what: 'cell' }>;
    expect(sentCell).toMatchObject({
      notebook: 'a.ipynb',
      kernel_id: 'k',
      cell_id: 'c',
      execution_count: 3,
      gpu_ms: 1500,
    });
    expect([
      sentCell.started_ms,
      sentCell.ended_ms,
      JSON.stringify(sentCell).includes('secret'),
    ]).toEqual([10, 5001, false]);
    const event: Event = { ...sentCell, at_ms: 5001, gpu: null, what: 'cell' };
    expect(executionsFromHistory([event], [])).toMatchObject([
      { kernelId: 'k', count: 3, code: '', cost: { gpus: [0], energy_joules: 1 } },
    ]);
    expect(
      executionsFromHistory([event], [{ ...own, cost: { ...own.cost, started_ms: 10 } }]),
    ).toEqual([]);
  });

  it('recording a cell ignores network errors', async () => {
    const request = vi.fn<Request>(() => Promise.reject(new TypeError('no network')));
    await expect(sendCellCost(makeRun('a', 1), request)).resolves.toBeUndefined();
  });
});

describe('notebook names', () => {
  const of = (kernelId: string, path: string | null): CellExecution => ({
    ...makeRun(kernelId, 1),
    kernelId,
    path,
  });

  it('notebooks of same name show their folders', () => {
    const executions = [
      of('1', 'a/a.ipynb'),
      of('2', 'b/a.ipynb'),
      of('3', null),
      of('4', 'c/x.ipynb'),
    ];
    const names = (pathOf: (kernelId: string) => string | null, others: string[]): string[] =>
      executions.map(createNotebookNamer(executions, pathOf, others));
    expect(names(() => null, [])).toEqual(['a/a.ipynb', 'b/a.ipynb', 'a.ipynb', 'x.ipynb']);
    const renamed = (kernelId: string): string | null =>
      ({ 2: 'b/new.ipynb', 3: 'a/a.ipynb' })[kernelId] ?? null;
    expect(names(renamed, ['d/x.ipynb'])).toEqual(['a.ipynb', 'new.ipynb', 'a.ipynb', 'c/x.ipynb']);
  });

  it('notebook names are sent without folders', async () => {
    const request = vi.fn<Request>(() => Promise.resolve(Response.json({}, { status: 201 })));
    await sendCellCost(of('1', 'secret/a.ipynb'), request);
    const [, init] = request.mock.lastCall ?? [];
    expect(init?.body).not.toContain('secret');
  });

  it('stored executions of older versions load without path', () => {
    const { storage, stored } = newStorage();
    const { path, ...old } = makeRun('a', 1);
    expect(path).toBe('w/a.ipynb');
    stored.set('gpumon:cells', JSON.stringify([old, { ...old, key: 'b', path: 3 }]));
    const log = new CellLog();
    log.attachStorage(() => storage);
    expect(log.executions).toEqual([{ ...old, path: null }]);
  });
});

describe('recorded executions', () => {
  it('stored limits in unknown format are dropped', () => {
    const { stored, storage } = newStorage();
    const { limits, ...cost } = makeRun('', 1).cost;
    const all = [LIMIT_SUMMARY, limits, { shares: 'none' }, undefined].map((stored, i) => ({
      ...makeRun(String(i), 1),
      cost: { ...cost, limits: stored },
    }));
    stored.set('gpumon:cells', JSON.stringify(all));
    const log = new CellLog();
    log.attachStorage(() => storage);
    expect(log.executions.map((one) => one.cost.limits)).toEqual([LIMIT_SUMMARY, null, null, null]);
  });

  it('newest five hundred executions are kept', () => {
    const log = new CellLog();
    for (let i = 0; i < 510; i += 1) {
      log.put({ ...makeRun(String(i), 1), running: true });
      log.put(makeRun(String(i), 2));
    }
    expect(log.executions).toHaveLength(500);
    expect(log.executions[0]).toMatchObject({ key: '10', running: false, cost: { gpu_s: 2 } });
  });

  it('ended executions survive a reload', () => {
    const { storage } = newStorage();
    const log = new CellLog();
    log.attachStorage(() => storage);
    log.put(makeRun('ended', 1));
    log.put({ ...makeRun('running', 1), running: true });
    log.put(makeRun('last', 1));
    const next = new CellLog();
    next.attachStorage(() => storage);
    expect(next.executions.map(({ key }) => key)).toEqual(['ended', 'last']);
    const full = {
      ...storage,
      setItem: () => {
        throw new Error('quota');
      },
    };
    const other = new CellLog();
    other.attachStorage(() => full);
    other.put(makeRun('more', 1));
    expect(other.executions).toHaveLength(3);
  });

  it('valid stored executions are loaded with shortened code', () => {
    const { stored, storage } = newStorage();
    const log = new CellLog();
    log.attachStorage(() => storage);
    log.put({
      ...makeRun('long', 1),
      code: `${'# about\n'.repeat(100)}fit()\n${'x = 1\n'.repeat(1000)}`,
    });
    const [[key, text] = ['', '']] = [...stored];
    expect(text.length).toBeLessThan(700);
    const other = { ...makeRun('other', 1), cost: { gpus: 'all' } };
    stored.set(key, JSON.stringify([...(JSON.parse(text) as object[]), null, 7, {}, other]));
    const next = new CellLog();
    next.attachStorage(() => storage);
    expect(next.executions.map(executionName)).toEqual(['[3] fit()']);
  });

  it('executions are kept without usable storage', () => {
    const forbidden = new CellLog();
    forbidden.attachStorage(() => {
      throw new DOMException('', 'SecurityError');
    });
    const broken = new CellLog();
    broken.attachStorage(() => ({ getItem: () => '{"', setItem: () => undefined }));
    for (const log of [forbidden, broken]) {
      log.put(makeRun('a', 1));
      expect(log.executions).toHaveLength(1);
    }
  });

  it('execution is named after its first code line', () => {
    expect(executionName({ ...makeRun('a', 1), code: '\n# load\n  model.fit(x)\n' })).toBe(
      '[3] model.fit(x)',
    );
    expect(executionName({ ...makeRun('a', 1), code: '', count: null })).toBe('[ ]');
    expect(
      executionName({ ...makeRun('a', 1), code: `x = "${'y'.repeat(200)}"` }).length,
    ).toBeLessThanOrEqual(80);
  });

  it('executions are sorted by cost on selected GPUs', () => {
    const runs = [
      makeRun('few', 10),
      makeRun('unknown', null),
      makeRun('much', 900),
      makeRun('elsewhere', 5000, [1]),
    ];
    expect(selectAndSortByCost(runs, 'gpu', new Set([0])).map(({ key }) => key)).toEqual([
      'much',
      'few',
      'unknown',
    ]);
  });
});
