// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { Store } from '../model/store';
import {
  makeGpu,
  makeHello,
  makeInventory,
  NOW,
  makeProcess,
  makeSample,
  makeThrottledCondition,
} from '../testing/frames';
import { showAllOnScreen } from '../testing/on-screen';
import type { GpuSample } from '../wire';
import { Overview } from './overview';

/** The number of elements of a row with one holder. An open card has about 100. */
const NODES_OF_A_ROW = 52;

let store: Store;
let overview: Overview;

beforeEach(() => {
  vi.useFakeTimers();
  vi.setSystemTime(NOW);
  localStorage.clear();
  showOverview();
});

afterEach(() => {
  overview.dispose();
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

function showOverview(): void {
  store = new Store();
  store.phase = { phase: 'open' };
  const invalidate = (): void => overview.render();
  overview = new Overview(store, { title: 'GPUs', invalidate, onRetry: () => undefined });
  document.body.append(overview.element);
}

/** Sets the width of the view, and makes all of its elements visible. */
function layOut(width_px: number): void {
  showAllOnScreen();
  vi.spyOn(Element.prototype, 'clientWidth', 'get').mockReturnValue(width_px);
}

function show(...gpus: GpuSample[]): void {
  store.apply(makeHello({ inventory: makeInventory(gpus.length), sample: makeSample(NOW, gpus) }));
  overview.render();
}

function showMany(
  count: number,
  changes: (index: number) => Partial<GpuSample> = () => ({}),
): void {
  show(...Array.from({ length: count }, (_, index) => makeGpu(index, changes(index))));
}

function find(selector: string): HTMLElement {
  const found = overview.element.querySelector<HTMLElement>(selector);
  if (found === null) {
    throw new Error(`nothing matches ${selector}`);
  }
  return found;
}

function shownIndexes(): number[] {
  const items = overview.element.querySelectorAll<HTMLElement>('[data-gpu-index]');
  return [...items].map(({ dataset }) => Number(dataset.gpuIndex));
}

/** Shows `count` GPUs, and returns how often a frame reads the conditions of the first one. */
function countConditionReads(count: number): number {
  showMany(count);
  const [first] = store.sample?.gpus ?? [];
  const read = vi.fn(() => []);
  Object.defineProperty(first, 'conditions', { get: read });
  overview.render();
  return read.mock.calls.length;
}

function typeText(text: string): void {
  const field = find('input');
  (field as HTMLInputElement).value = text;
  field.dispatchEvent(new Event('input'));
}

/** Clicks an element, and renders the changed state of components. */
function click(element: HTMLElement): void {
  element.click();
  overview.render();
}

function press(element: Element | null, key: string): void {
  element?.dispatchEvent(new KeyboardEvent('keydown', { key }));
  overview.render();
}

function sortBy(place: string): void {
  click(find(`[data-place="${place}"] button`));
}

describe('GPU list', () => {
  it('six or more GPUs are shown as rows', () => {
    showMany(5);
    expect(overview.element.querySelectorAll('[data-row]')).toHaveLength(0);
    expect(overview.element.querySelector('.gpumon-filter')).toBeNull();
    showMany(6);
    expect(overview.element.querySelectorAll('[data-row]')).toHaveLength(6);
    expect(find('.gpumon-filter').role).toBe('search');
  });

  it('row has units and opens as card', async () => {
    showMany(8);
    const item = find('[data-gpu-index="3"]');
    const readings = [...item.querySelectorAll('.gpumon-value')].map(
      ({ textContent }) => textContent,
    );
    expect(readings.map((text) => text.replaceAll('\u00a0', ' '))).toEqual([
      '96 %',
      '78 / 140 GiB',
      '692 W',
    ]);
    click(item);
    await vi.dynamicImportSettled();
    overview.render();
    expect([item.hasAttribute('data-row'), item.dataset.open]).toEqual([false, 'true']);
    expect(item.querySelector('.gpumon-gpu-details')).not.toBeNull();
    click(item);
    expect(item.dataset.open).toBe('true');
    press(item, 'Enter');
    expect([item.hasAttribute('data-row'), item.querySelector('.gpumon-gpu-details')]).toEqual([
      true,
      null,
    ]);
    press(item, 'Enter');
    expect(item.dataset.open).toBe('true');
  });

  it('row without other state shows main cause', () => {
    showMany(8, (index) => (index === 3 ? { throttle_reasons: ['gpu_idle'] } : {}));
    const states = [2, 3].map((index) =>
      find(`[data-gpu-index="${index}"] [data-testid="gpumon-gpu-state"]`),
    );
    expect(states.map(({ textContent }) => textContent)).toEqual([
      'Tensor-bound 62\u00a0%',
      'idle',
    ]);
    expect(states.map(({ dataset }) => dataset.level)).toEqual(['none', 'none']);
    expect(states[0]?.title).toContain('Tensor cores are busy');
    expect(overview.element.querySelector('[data-testid="gpumon-limit"]')).toBeNull();
  });

  it('arrow keys move between GPUs', () => {
    showMany(8);
    find('[data-gpu-index="3"]').focus();
    press(document.activeElement, 'ArrowDown');
    expect(document.activeElement).toBe(find('[data-gpu-index="4"]'));
    press(document.activeElement, 'ArrowUp');
    press(document.activeElement, 'ArrowUp');
    expect(document.activeElement).toBe(find('[data-gpu-index="2"]'));
  });

  it('many GPUs need few elements each', () => {
    const nodes = (): number => find('.gpumon-gpus').querySelectorAll('*').length;
    showMany(64, () => ({ processes: [makeProcess(7)] }));
    expect(nodes()).toBeLessThanOrEqual(64 * NODES_OF_A_ROW);
  });

  it('rows have line charts unless in several columns', () => {
    layOut(1400);
    const lines = (count: number): number => {
      overview.dispose();
      showOverview();
      showMany(count);
      overview.render();
      return overview.element.querySelectorAll('canvas').length;
    };
    expect([lines(8), lines(64)]).toEqual([8, 0]);
  });

  it('each column with rows has headers', () => {
    layOut(4100);
    const heads = (count: number): number => {
      overview.dispose();
      showOverview();
      showMany(count);
      return find('.gpumon-row-heads').children.length;
    };
    expect([heads(8), heads(17), heads(64)]).toEqual([1, 9, 8]);
    click(find('[data-gpu-index="3"]'));
    expect(find('.gpumon-row-heads').children).toHaveLength(3);
  });

  it('condition does not change layout of GPU rows', () => {
    showMany(8);
    const before = [...find('.gpumon-gpus').querySelectorAll('*')].filter(
      (one) => !one.closest('[hidden]'),
    ).length;
    showMany(8, (index) =>
      index === 2 ? { conditions: [makeThrottledCondition('critical')] } : {},
    );
    const after = [...find('.gpumon-gpus').querySelectorAll('*')].filter(
      (one) => !one.closest('[hidden]'),
    ).length;
    expect(after).toBe(before);
    expect(find('[data-gpu-index="2"] [data-testid="gpumon-gpu-state"]').dataset.level).toBe(
      'critical',
    );
  });

  it('order by state is stored', () => {
    showMany(8, (index) =>
      index === 5 ? { conditions: [makeThrottledCondition('warning')] } : {},
    );
    expect(shownIndexes()).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    sortBy('state');
    expect(countConditionReads(8)).toBe(countConditionReads(64));
    showMany(8, (index) =>
      index === 5 ? { conditions: [makeThrottledCondition('warning')] } : {},
    );
    expect(shownIndexes()).toEqual([5, 0, 1, 2, 3, 4, 6, 7]);
    overview.dispose();
    showOverview();
    showMany(8, (index) => (index === 6 ? { health: { state: 'lost', since_ms: NOW } } : {}));
    expect(shownIndexes()[0]).toBe(6);
    expect(find('[data-place="state"]').ariaSort).toBe('descending');
  });

  it('click on header sorts GPUs', () => {
    showMany(8, (index) => ({
      power: { ...makeGpu(0).power, draw_watts: 100 + ((index * 3) % 8) },
    }));
    sortBy('power');
    expect(shownIndexes()).toEqual([5, 2, 7, 4, 1, 6, 3, 0]);
    expect(find('[data-place="power"]').ariaSort).toBe('descending');
    sortBy('power');
    expect(shownIndexes()).toEqual([0, 3, 6, 1, 4, 7, 2, 5]);
    sortBy('power');
    expect(shownIndexes()).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(find('[data-place="power"]').ariaSort).toBe('none');
  });

  it('number of critical alerts filters GPUs', () => {
    showMany(8, (index) =>
      index === 2 ? { conditions: [makeThrottledCondition('critical')] } : { conditions: [] },
    );
    const chip = find('[data-testid="gpumon-head-critical"]');
    expect([chip.textContent, chip.ariaPressed]).toEqual(['1 critical', 'false']);
    click(chip);
    expect([shownIndexes(), chip.ariaPressed]).toEqual([[2], 'true']);
    expect((find('input') as HTMLInputElement).value).toBe('critical');
    click(chip);
    expect(shownIndexes()).toHaveLength(8);
  });

  it('click on alert count filters even few GPUs', () => {
    showMany(3, (index) =>
      index === 1 ? { conditions: [makeThrottledCondition('critical')] } : {},
    );
    click(find('[data-testid="gpumon-head-critical"]'));
    expect(shownIndexes()).toEqual([1]);
    showMany(3);
    expect(find('[data-testid="gpumon-head-critical"]').textContent).toBe('0 critical');
    click(find('.gpumon-empty button'));
    expect(shownIndexes()).toEqual([0, 1, 2]);
    expect(overview.element.querySelector('[data-testid="gpumon-head-critical"]')).toBeNull();
  });

  it('stored filter matches GPUs and processes', () => {
    const ana = (index: number): Partial<GpuSample> =>
      index === 4
        ? { processes: [makeProcess(7, { user: 'ana' })] }
        : { processes: [makeProcess(index, { user: 'bob' })] };
    showMany(8, ana);
    typeText('ana');
    expect(shownIndexes()).toEqual([4]);
    expect(overview.element.querySelectorAll('[data-pid]')).toHaveLength(1);
    expect(find('[data-testid="gpumon-filter-count"]').textContent).toBe('1 of 8');
    overview.dispose();
    showOverview();
    showMany(8, ana);
    expect(shownIndexes()).toEqual([4]);
    typeText('nobody');
    const messages = [...overview.element.querySelectorAll('.gpumon-empty')];
    expect([shownIndexes(), messages.map(({ textContent }) => textContent).slice(0, 2)]).toEqual([
      [],
      ['No GPU matches the filter. Show all GPUs', 'No process matches the filter.'],
    ]);
    click(find('.gpumon-empty button'));
    expect(shownIndexes()).toHaveLength(8);
  });

  it('common GPU name is shown only in summary', () => {
    showMany(8);
    expect(find('.gpumon-gpu-list').hasAttribute('data-same-name')).toBe(true);
    expect(find('[data-testid="gpumon-summary"]').textContent).toContain('8 of 8 H200 busy');
  });
});
