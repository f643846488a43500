// @vitest-environment jsdom
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';

import { setTranslator, trans } from '../lib/translation';
import { describeOom } from '../model/describe-oom';
import { loadXids } from '../model/alerts';
import { parseDashboardState } from '../model/dashboard/state';
import { Store } from '../model/store';
import { pseudoTranslator, findUntranslated, textsOf } from '../testing/pseudo-locale';
import { GIB, makeInventory, NOW, makeSample, makeUnifiedGpu } from '../testing/frames';
import { COST, makeGpusInAllStates, makeFullHello, STORED_COST } from '../testing/full-hello';
import { CellLine, Chip } from './notebook';
import { Dashboard } from './dashboard/dashboard';
import './details';
import { OomNote } from './oom-note';
import { Overview } from './overview';

/** Names and commands that are the same in every language. */
const DATA = [
  'gpumon doctor',
  'gpumon resume',
  'gpumon serve --data-dir DIR',
  'gpumon',
  'NVIDIA',
  'train.py',
  'sm',
  'Hopper',
  'ana',
  'train.ipynb',
  'epoch 3',
  'PyTorch',
  'the code',
  'device memory',
  'copy (fp32)',
];
const english = trans;
const host = {
  pathOf: (id: string) => (id === 'k1' ? 'train.ipynb' : null),
  open: vi.fn(),
  openMenu: vi.fn(),
};

beforeEach(() => {
  vi.useFakeTimers();
  vi.setSystemTime(NOW);
  setTranslator(pseudoTranslator(english));
});
afterEach(() => {
  setTranslator(english);
  vi.useRealTimers();
});

function fullStore(): Store {
  const store = new Store();
  store.phase = { phase: 'open' };
  store.apply(makeFullHello());
  const run = {
    key: '',
    kernelId: 'k1',
    cellId: 'c1',
    notebook: 'train.ipynb',
    path: 'a/train.ipynb',
    count: 1,
    code: 'the code',
    running: true,
  };
  store.cells.put({ ...run, cost: COST });
  return store;
}

beforeAll(loadXids);

describe('overview in another language', () => {
  const options = { title: '', connectingMessage: '', notebooks: host, onRetry: vi.fn() };
  const untranslatedIn = (element: Element): string[] => findUntranslated(textsOf(element), DATA);

  function newOverview(): Overview {
    const more = { onOpenGpu: vi.fn(), spanMinutes: 5, invalidate: vi.fn() };
    const overview = new Overview(fullStore(), { ...options, ...more });
    overview.render();
    return overview;
  }

  it('overview is completely translated', () => {
    expect(untranslatedIn(newOverview().element)).toEqual([]);
  });

  it('opened parts of the overview are completely translated', async () => {
    const overview = newOverview();
    overview.element
      .querySelectorAll<HTMLElement>('.gpumon-toggle')
      .forEach((button) => button.click());
    overview.render();
    await vi.dynamicImportSettled();
    overview.render();
    for (const button of overview.element.querySelectorAll<HTMLElement>(
      'button:not(.gpumon-toggle, .gpumon-head-alert)',
    )) {
      button.click();
    }
    overview.render();
    expect(overview.element.querySelectorAll('.gpumon-group').length).toBeGreaterThan(10);
    expect(untranslatedIn(overview.element)).toEqual([]);
  });

  it('notices are completely translated', () => {
    const store = fullStore();
    const overview = new Overview(store, { ...options, invalidate: vi.fn() });
    for (const state of ['starting', 'restarting', 'unavailable', 'paused', 'running'] as const) {
      const resumes = state === 'paused' ? { resumes_ms: NOW } : {};
      store.apply({ type: 'collector', state, since_ms: NOW, message: null, ...resumes });
      overview.render();
      expect(untranslatedIn(overview.element)).toEqual([]);
    }
    for (const phase of [
      { phase: 'connecting', attempt: 0 },
      { phase: 'connecting', attempt: 1 },
      { phase: 'waiting', attempt: 1, retry_at_ms: NOW },
      { phase: 'open' },
    ] as const) {
      store.phase = phase;
      vi.setSystemTime(NOW + 60_000);
      overview.render();
      expect(untranslatedIn(overview.element)).toEqual([]);
    }
  });

  it('charts and cell table are completely translated', async () => {
    for (const address of ['view=apart', 'from=1000&to=9000']) {
      const dashboard = new Dashboard(
        fullStore(),
        { update: vi.fn() },
        {
          ...options,
          state: parseDashboardState(address),
          onState: vi.fn(),
          request: vi.fn(),
          invalidate: vi.fn(),
        },
      );
      dashboard.render();
      dashboard.element.dispatchEvent(new KeyboardEvent('keydown', { key: 'm' }));
      expect(dashboard.element.querySelectorAll('[data-plot]').length).toBeGreaterThan(10);
      expect(untranslatedIn(dashboard.element)).toEqual([]);
      const menus = dashboard.element.querySelectorAll<HTMLDetailsElement>('details');
      expect(menus.length).toBeGreaterThan(15);
      for (const menu of menus) {
        menu.open = true;
        menu.dispatchEvent(new Event('toggle'));
        await Promise.resolve();
        dashboard.render();
        expect(menu.children.length).toBe(2);
        expect(untranslatedIn(dashboard.element)).toEqual([]);
      }
    }
  });

  it('cell lines and GPU indicators are completely translated', () => {
    const line = new CellLine();
    const earlier = { ...STORED_COST, duration_s: 1 };
    line.update(COST, false, earlier);
    const [last, before] = [new CellLine(), new CellLine()];
    last.updateStored(earlier, true);
    before.updateStored(earlier, false);
    const chip = new Chip(vi.fn());
    chip.update(makeSample(NOW, makeGpusInAllStates()), 'k1');
    const note = new OomNote(host);
    const error = {
      framework: 'PyTorch',
      total_bytes: null,
      free_bytes: null,
      gpu: 0,
      says_gpu: true,
    };
    const unified = makeUnifiedGpu(0, 41, { processes: makeGpusInAllStates()[0]?.processes ?? [] });
    for (const [asked_bytes, shown] of [
      [90 * GIB, makeGpusInAllStates()],
      [null, makeGpusInAllStates()],
      [90 * GIB, [unified]],
    ] as const) {
      const description = describeOom(
        { ...error, asked_bytes, unused_bytes: 99 * GIB, limit_bytes: GIB },
        {
          inventory: makeInventory(shown.length),
          sample: makeSample(NOW, [...shown]),
          kernelId: 'k1',
          pathOf: host.pathOf,
        },
      );
      expect(description?.holders.length).toBeGreaterThan(2);
      if (description !== null) {
        note.update(description);
      }
      expect(
        [line, last, before, chip, note].flatMap(({ element }) => untranslatedIn(element)),
      ).toEqual([]);
    }
  });
});
