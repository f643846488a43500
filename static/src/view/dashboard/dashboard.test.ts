// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { parseDashboardState, formatDashboardState } from '../../model/dashboard/state';
import type { Request } from '../../model/request';
import { Store } from '../../model/store';
import { GIB, makeGpu, makeHello, makeInventory, NOW, makeSample } from '../../testing/frames';
import { makeHistorySpan } from '../../testing/history';
import { showAllOnScreen } from '../../testing/on-screen';
import type { Condition, HistorySpan } from '../../wire';
import { Dashboard } from './dashboard';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'] });
  vi.setSystemTime(NOW);
});
afterEach(() => vi.unstubAllGlobals());

interface ShownDashboard {
  element: HTMLElement;
  store: Store;
  render: () => void;
  address: () => string;
}

/** Shows the dashboard of `count` GPUs. Each GPU draws 10 W more than the previous one. */
function showDashboard(count: number, address = '', request?: Request): ShownDashboard {
  const gpus = Array.from({ length: count }, (_, index) =>
    makeGpu(index, { power: { ...makeGpu(index).power, draw_watts: 10 * index } }),
  );
  const store = new Store();
  store.phase = { phase: 'open' };
  store.apply(makeHello({ inventory: makeInventory(count), sample: makeSample(NOW, gpus) }));
  let state = parseDashboardState(address);
  let made: Dashboard | null = null;
  const dashboard = new Dashboard(
    store,
    { update: vi.fn() },
    {
      title: '',
      state,
      onState: (next) => {
        state = next;
      },
      request,
      onRetry: vi.fn(),
      invalidate: () => made?.render(),
    },
  );
  made = dashboard;
  document.body.replaceChildren(dashboard.element);
  dashboard.render();
  return {
    element: dashboard.element,
    store,
    render: () => dashboard.render(),
    address: () => formatDashboardState(state),
  };
}

function legendButtons(element: HTMLElement, plot = 'all power.draw_watts'): HTMLButtonElement[] {
  return [
    ...element.querySelectorAll<HTMLButtonElement>(
      `[data-plot="${plot}"] .gpumon-readouts > button`,
    ),
  ];
}

const texts = (entries: HTMLElement[]): string[] =>
  entries.map((one) => one.textContent.replaceAll('\u00a0', ' '));
const pressed = (entries: HTMLElement[]): (string | null)[] =>
  entries.map((one) => one.getAttribute('aria-pressed'));

/** Opens or closes the menu of this name. Returns `null` if there is none. */
function toggleMenu(element: HTMLElement, name: string, open = true): HTMLDetailsElement | null {
  const summary = [...element.querySelectorAll('summary')].find(
    (one) => one.getAttribute('aria-label')?.replace(/: \d.*|: Custom.*/, '') === name,
  );
  const menu = summary?.closest('details') ?? null;
  if (menu !== null) {
    menu.open = open;
    menu.dispatchEvent(new Event('toggle'));
  }
  return menu;
}

/** Clicks the button in `element` whose whole text matches `text`. */
function clickButton(element: Element | null, text: string | RegExp): void {
  [...(element?.querySelectorAll('button') ?? [])]
    .find(
      (one) =>
        one.textContent.replaceAll('\u00a0', ' ').match(text)?.[0] ===
        one.textContent.replaceAll('\u00a0', ' '),
    )
    ?.click();
}

it('chart menu has vendor terms', () => {
  const { element, store, render } = showDashboard(1);
  const machine = makeInventory(1, 'amd');
  store.apply(makeHello({ inventory: machine, sample: makeSample(NOW, [makeGpu(0)]) }));
  render();
  toggleMenu(element, 'Charts');
  const list = element.querySelector('.gpumon-chart-list');
  const words = [...(list?.querySelectorAll('span') ?? [])].map((one) => one.textContent);
  expect(words).toEqual(expect.arrayContaining(['Activity', 'XGMI', 'Partitions']));
  expect(element.querySelector('option[value="nvlink.rx_bytes_per_second"]')?.textContent).toBe(
    'XGMI RX',
  );
  expect(element.querySelector('option')?.textContent).toBe('Add a chart');
});

describe('dashboard legends', () => {
  it('legend of limits omits causes without a share', () => {
    const { element, address } = showDashboard(1);
    const legend = (): HTMLButtonElement[] => legendButtons(element, 'gpu 0 limits');
    expect(texts(legend())).toEqual([
      'Idle4 %',
      'Memory-bound8 %',
      'Tensor-bound62 %',
      'Latency-bound26 %',
    ]);
    legend()[2]?.dispatchEvent(new MouseEvent('click', { bubbles: true, ctrlKey: true }));
    expect(address()).toBe('hide=limits.tensor_percent');
    expect(pressed(legend())).toEqual(['true', 'true', 'false', 'true']);
  });

  it('metrics of limits are requested for their charts', () => {
    const update = vi.fn();
    const store = new Store();
    const state = parseDashboardState('charts=power');
    const options = { title: '', state, onState: vi.fn(), onRetry: vi.fn(), invalidate: vi.fn() };
    const dashboard = new Dashboard(store, { update }, options);
    dashboard.render();
    const requested = (): string =>
      (update.mock.lastCall as [{ metrics: string[] }])[0].metrics.join();
    expect(requested()).not.toContain('limits.');
    store.apply(makeHello());
    dashboard.render();
    expect(requested()).not.toContain('limits.');
    dashboard.show(parseDashboardState('charts=power,limits'));
    dashboard.render();
    expect(requested()).toContain('limits.host_percent');
    const count = update.mock.calls.length;
    dashboard.render();
    expect(update).toHaveBeenCalledTimes(count);
  });

  it('click isolates GPU, modified click hides it', () => {
    const { element, address } = showDashboard(3);
    const click = (at: number, keys: MouseEventInit = {}): void => {
      legendButtons(element)[at]?.dispatchEvent(
        new MouseEvent('click', { bubbles: true, ...keys }),
      );
    };
    expect(texts(legendButtons(element))).toEqual(['00 W', '110 W', '220 W']);
    click(1);
    expect(pressed(legendButtons(element))).toEqual(['false', 'true', 'false']);
    expect(pressed(legendButtons(element, 'all temperature.gpu_celsius'))).toEqual([
      'false',
      'true',
      'false',
    ]);
    expect(pressed(legendButtons(element, 'host cpu'))).toEqual(['true']);
    expect(address()).toBe('hide=0,2');
    click(1);
    expect(address()).toBe('');
    click(2, { shiftKey: true });
    expect(address()).toBe('hide=2');
    legendButtons(element)[2]?.dispatchEvent(
      new KeyboardEvent('keydown', { key: 'Enter', ctrlKey: true, bubbles: true }),
    );
    expect(address()).toBe('');
  });

  it('many GPUs show median, extremes and selected lines', () => {
    const { element, address } = showDashboard(64);
    const median = (): string | undefined =>
      element.querySelector('[data-plot="all power.draw_watts"] .gpumon-readouts > span')
        ?.textContent;
    expect(median()?.replaceAll('\u00a0', ' ')).toBe('Median315 W');
    expect(texts(legendButtons(element))).toEqual(['min00 W', 'max63630 W']);
    expect(element.querySelectorAll('*').length).toBeLessThan(1100);
    const shared = [
      ...element.querySelectorAll<HTMLButtonElement>(
        '[data-section=all] > .gpumon-legend > button',
      ),
    ];
    expect(texts(shared)).toEqual(Array.from({ length: 64 }, (_, gpu) => String(gpu)));
    shared[7]?.click();
    expect(texts(legendButtons(element))).toEqual(['770 W']);
    expect(median()).toContain('Median');
    shared[7]?.click();
    expect(address()).toBe('');
  });

  it('named extreme changes only by clear margin', () => {
    showAllOnScreen();
    const { element, store, render } = showDashboard(13);
    store.trackMetrics(['pcie.rx_bytes_per_second']);
    const receive = (highest: number, share: number, at_ms: number): string | undefined => {
      const gpus = Array.from({ length: 13 }, (_, index) =>
        makeGpu(index, {
          pcie: {
            ...makeGpu(index).pcie,
            rx_bytes_per_second: (index === highest ? share : 1) * 1e10,
          },
        }),
      );
      vi.setSystemTime(at_ms);
      store.apply({ type: 'sample', ...makeSample(at_ms, gpus) });
      render();
      return texts(legendButtons(element, 'all pcie.rx_bytes_per_second')).find((one) =>
        one.startsWith('max'),
      );
    };
    expect(receive(3, 1.1, NOW + 1000)).toBe('max311.0 GB/s');
    expect(receive(5, 1.01, NOW + 2000)).toBe('max310.0 GB/s');
  });
});

describe('dashboard charts', () => {
  const plots = (element: HTMLElement): (string | null)[] =>
    [...element.querySelectorAll('[data-plot]')].map((plot) => plot.getAttribute('data-plot'));
  const openMenu = async (element: HTMLElement, plot: string): Promise<Element | null> => {
    const menu = toggleMenu(
      element.querySelector(`[data-plot="${plot}"]`) ?? element,
      'Chart menu',
    );
    await Promise.resolve();
    return menu;
  };
  const menuItem = async (element: HTMLElement, plot: string, name: string): Promise<void> => {
    clickButton(await openMenu(element, plot), name);
    await Promise.resolve();
  };

  it('menus move, remove and add charts', async () => {
    const { element, address } = showDashboard(
      2,
      'charts=power.draw_watts,fan_percent,memory.used_bytes,cpu',
    );
    expect(plots(element)).toEqual(['all power.draw_watts', 'all memory.used_bytes', 'host cpu']);
    await menuItem(element, 'all power.draw_watts', 'Move right');
    await menuItem(element, 'all power.draw_watts', 'Move right');
    expect(address()).toBe('charts=fan_percent,memory.used_bytes,power.draw_watts,cpu');
    await menuItem(element, 'all memory.used_bytes', 'Remove chart');
    const charts = toggleMenu(element, 'Charts');
    const list = element.querySelector<HTMLSelectElement>('select');
    expect(list?.querySelectorAll('option').length).toBeGreaterThan(60);
    if (list !== null) {
      list.value = 'memory.free_bytes';
      list.dispatchEvent(new Event('change', { bubbles: true }));
    }
    expect(plots(element)).toEqual(['all power.draw_watts', 'all memory.free_bytes', 'host cpu']);
    expect(texts(legendButtons(element, 'all memory.free_bytes'))).toEqual([
      '061.0 GiB',
      '161.0 GiB',
    ]);
    expect(address()).toBe('charts=fan_percent,power.draw_watts,cpu,memory.free_bytes');
    clickButton(charts, 'Default charts');
    expect(address()).toBe('');
  });

  it('charts are copied, and failure is reported', async () => {
    const { element, store, render } = showDashboard(2, 'charts=power.draw_watts');
    const writeText = vi.fn<(text: string) => Promise<void>>(() => Promise.resolve());
    vi.stubGlobal('navigator', { clipboard: { writeText } });
    const menu = await openMenu(element, 'all power.draw_watts');
    vi.setSystemTime(NOW + 1000);
    const next = [makeGpu(0, { power: { ...makeGpu(0).power, draw_watts: 432 } }), makeGpu(1)];
    store.apply({ type: 'sample', ...makeSample(NOW + 1000, next) });
    render();
    clickButton(menu, 'Copy as CSV');
    await vi.waitFor(() => expect(writeText.mock.lastCall?.[0]).toContain('432'));
    clickButton(menu, 'Copy as PNG');
    const status = element.querySelector('.gpumon-plot-menu [role=status]');
    await vi.waitFor(() =>
      expect(status?.textContent).toContain(
        'Not copied: Error: The browser could not create a canvas. Reload the page.',
      ),
    );
  });

  it('Escape resets the zoom', () => {
    const { element, address } = showDashboard(2, 'axes=power.draw_watts:100:200&fit=1');
    element.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }));
    expect(address()).toBe('');
  });
});

const HOUR = 3_600_000;

describe('dashboard history', () => {
  const DAYS = 24 * 60;

  /** Shows charts of the power over the last `minutes`, with history from the server's response. */
  async function showWithHistory(
    minutes: number,
    answer: (from_ms: number, to_ms: number) => HistorySpan,
  ): Promise<ShownDashboard & { asked: URLSearchParams[] }> {
    const asked: URLSearchParams[] = [];
    const request = vi.fn<Request>((path) => {
      const { searchParams } = new URL(path, 'http://x/');
      asked.push(searchParams);
      return Promise.resolve(
        Response.json(
          answer(
            ...(['from_ms', 'to_ms'].map((name) => Number(searchParams.get(name))) as [
              number,
              number,
            ]),
          ),
        ),
      );
    });
    const view = showDashboard(1, `charts=power&span=${minutes}`, request);
    await vi.waitFor(() => expect(asked).toHaveLength(1));
    await vi.waitFor(() => expect(view.element.querySelector('[aria-busy]')).toBeNull());
    return { ...view, asked };
  }

  const note = (element: HTMLElement): HTMLElement | null =>
    element.querySelector<HTMLElement>('.gpumon-past-note');

  it('drawn metrics are requested and copied', async () => {
    const { element, asked } = await showWithHistory(7 * DAYS, (from_ms) =>
      makeHistorySpan(
        { from_ms, to_ms: NOW, resolution_ms: 6 * HOUR },
        Array<number>(41).fill(500),
      ),
    );
    expect(asked[0]?.get('metrics')).toBe('power.draw_watts,power.instant_watts');
    expect(note(element)).toBeNull();
    const writeText = vi.fn<(text: string) => Promise<void>>(() => Promise.resolve());
    vi.stubGlobal('navigator', { clipboard: { writeText } });
    const menu = toggleMenu(element, 'Chart menu');
    await Promise.resolve();
    clickButton(menu, 'Copy as CSV');
    await vi.waitFor(() => expect(writeText).toHaveBeenCalled());
    const [head, ...rows] = writeText.mock.lastCall?.[0].trim().split('\r\n') ?? [];
    expect(head).toContain(
      '"GPU 0 Average power.draw_watts min","GPU 0 Average power.draw_watts max"',
    );
    expect(rows.length).toBeGreaterThan(25);
    expect(rows[3]).toContain(',500,490,510');
  });

  it('short history is explained', async () => {
    const { element, address } = await showWithHistory(7 * DAYS, (_, to_ms) =>
      makeHistorySpan({ from_ms: NOW - 6 * HOUR, to_ms, resolution_ms: HOUR }, [1, 2, 3, 4, 5, 6]),
    );
    expect(note(element)?.textContent).toMatch(
      /^The history starts at .*for 6\sh\. To keep up to a year on disk, .*--data-dir/,
    );
    expect(note(element)?.querySelector('code')).not.toBeNull();
    note(element)?.querySelector('button')?.click();
    expect(address()).toMatch(
      new RegExp(`from=${NOW - 6 * HOUR}&to=${Math.floor(NOW / 1000)}\\d{3}$`),
    );
  });

  it('disk failure is explained', async () => {
    const storage = { on_disk: false, problem: 'The disk is full.', reach_ms: HOUR };
    const { element } = await showWithHistory(DAYS, (_, to_ms) =>
      makeHistorySpan({ from_ms: NOW - HOUR, to_ms, resolution_ms: HOUR, storage }, [1]),
    );
    expect(note(element)?.textContent).toContain('The disk is full.');
    expect(note(element)?.getAttribute('data-level')).toBe('warning');
    expect(note(element)?.querySelector('code')).toBeNull();
  });

  it('short live range does not request history', () => {
    const request = vi.fn<Request>();
    showDashboard(1, 'charts=power&span=5', request);
    expect(request).not.toHaveBeenCalled();
  });
});

describe('comparison', () => {
  const spans = vi.fn<Request>((path) => {
    const query = new URL(path, 'http://x/').searchParams;
    const [from_ms, to_ms] = [Number(query.get('from_ms')), Number(query.get('to_ms'))];
    // Spans that ended more than one hour ago have half the power of later spans.
    const watts = Array<number>(12).fill(to_ms < NOW - HOUR ? 200 : 400);
    return Promise.resolve(
      Response.json(
        makeHistorySpan({ from_ms, to_ms, resolution_ms: (to_ms - from_ms) / 12 }, watts),
      ),
    );
  });
  const cells = (element: HTMLElement, row: string): string[] => {
    const found = [...element.querySelectorAll('.gpumon-comparison tbody tr')].find((one) =>
      one.textContent.startsWith(row),
    );
    return [...(found?.querySelectorAll('td') ?? [])].map(({ textContent }) =>
      textContent.replaceAll('\u00a0', ' '),
    );
  };

  it('earlier span is requested and compared', async () => {
    const { element, address, render } = showDashboard(1, 'charts=power', spans);
    clickButton(toggleMenu(element, 'Compare'), '1 d earlier');
    expect(address()).toBe('charts=power&compare=86400000');
    await vi.waitFor(() => {
      render();
      expect(cells(element, 'Power, mean')).toEqual(['400 W', '200 W', '+100 %']);
    });
    expect(cells(element, 'Energy')).toEqual(['–', '–', '']);
    const asked = spans.mock.calls.map(([path]) =>
      Number(new URL(path, 'http://x/').searchParams.get('to_ms')),
    );
    expect(
      asked.some((to_ms) => to_ms > NOW - HOUR) && asked.some((to_ms) => to_ms < NOW - 23 * HOUR),
    ).toBe(true);
  });

  it('comparison is restored from URL and can stop', async () => {
    const { element, address, render } = showDashboard(1, 'charts=power&compare=3600000', spans);
    const menu = toggleMenu(element, 'Compared');
    expect(menu?.querySelector('summary')?.textContent).toBe('1\u00a0h earlier');
    await vi.waitFor(() => {
      render();
      expect(element.querySelector('.gpumon-comparison')).not.toBeNull();
    });
    clickButton(menu, 'Stop comparing');
    expect(address()).toBe('charts=power');
    render();
    expect(element.querySelector('.gpumon-comparison')).toBeNull();
  });

  it('comparison with times before history is not offered', async () => {
    const begun = vi.fn<Request>(() =>
      Promise.resolve(
        Response.json(
          makeHistorySpan({ from_ms: NOW - 2 * HOUR, to_ms: NOW, oldest_ms: NOW - 2 * HOUR }, [1]),
        ),
      ),
    );
    const { element, render } = showDashboard(1, 'charts=power&compare=3600000', begun);
    const menu = toggleMenu(element, 'Compared');
    await vi.waitFor(() => {
      render();
      const chips = [...(menu?.querySelectorAll<HTMLButtonElement>('[role=group] button') ?? [])];
      expect(chips.map(({ disabled }) => disabled)).toEqual([false, true, true, false]);
      expect(chips[1]?.title).toMatch('The history starts');
    });
  });
});

describe('paused charts', () => {
  const find = (element: HTMLElement, selector: string): HTMLElement => {
    const found = element.querySelector<HTMLElement>(selector);
    if (found === null) {
      throw new Error(`no ${selector}`);
    }
    return found;
  };
  const status = (element: HTMLElement): HTMLElement =>
    find(element, '[data-testid=gpumon-status]');

  it('header shows pause and resume button', () => {
    const { element, address, render } = showDashboard(1);
    const resume = (): HTMLElement | null =>
      element.querySelector('.gpumon-head [data-testid=gpumon-resume]');
    expect([status(element).dataset.level, resume()]).toEqual(['ok', null]);
    element.dispatchEvent(new KeyboardEvent('keydown', { key: ' ', bubbles: true }));
    expect(find(element, '.gpumon-status-text').textContent).toMatch(
      /^Paused \d\d:\d\d:\d\d – \d\d:\d\d:\d\d$/,
    );
    expect([status(element).dataset.level, resume()?.textContent]).toEqual(['paused', 'Resume']);
    resume()?.click();
    expect(find(element, '.gpumon-status-text').textContent).toMatch(/^Live/);
    expect([status(element).dataset.level, resume(), address()]).toEqual(['ok', null, '']);
    expect(document.activeElement).toBe(element);
    render();
  });

  it('pause and resume are announced', () => {
    const { element } = showDashboard(1);
    const spoken = find(element, '.gpumon-head [role=status]');
    expect(spoken.textContent).toBe('');
    element.dispatchEvent(new KeyboardEvent('keydown', { key: ' ', bubbles: true }));
    expect(spoken.textContent).toMatch(/^Charts paused: \d\d:\d\d:\d\d to \d\d:\d\d:\d\d$/);
    element.dispatchEvent(new KeyboardEvent('keydown', { key: ' ', bubbles: true }));
    expect(spoken.textContent).toBe('Charts resumed');
  });

  it('pause does not hide a lost connection', () => {
    const { element, store, render } = showDashboard(1, `from=${NOW - 60_000}&to=${NOW}`);
    store.phase = { phase: 'waiting', attempt: 1, retry_at_ms: NOW + 5000 };
    render();
    expect(find(element, '.gpumon-status-text').textContent).toBe('Reconnecting in 5\u00a0s');
    expect(find(element, '[data-testid=gpumon-resume]').textContent).toBe('Resume');
  });
});

describe('toolbar', () => {
  const summaries = (element: HTMLElement): (string | null)[] =>
    [...element.querySelectorAll('.gpumon-controls summary')].map((one) =>
      one.getAttribute('aria-label'),
    );

  it('all controls have names and tooltips', () => {
    const { element } = showDashboard(2, '', vi.fn<Request>());
    expect(summaries(element)).toEqual([
      'GPUs: 2 GPUs',
      'Time range: 2\u00a0min',
      'Compare',
      'Add mark',
      'Charts',
      'Shortcuts',
    ]);
    const icons = [...element.querySelectorAll('.gpumon-icons > button')];
    expect(icons.map((one) => one.getAttribute('aria-label'))).toEqual(['Pause', 'Fit axes']);
    expect(icons.every((one) => one.getAttribute('title') !== null)).toBe(true);
  });

  it('menus select GPUs and time ranges', () => {
    const { element, address } = showDashboard(3);
    const gpus = toggleMenu(element, 'GPUs');
    clickButton(gpus, '1');
    clickButton(gpus, '2');
    expect(address()).toBe('gpu=1,2');
    expect(gpus?.querySelector('summary')?.textContent).toBe('2 of 3 GPUs');
    clickButton(gpus, 'All');
    const range = toggleMenu(element, 'Time range');
    expect(gpus?.open).toBe(false);
    clickButton(range, '15 min');
    expect([address(), range?.open]).toEqual(['span=15', false]);
  });

  it('custom time range zooms', () => {
    const { element, address } = showDashboard(1);
    const range = toggleMenu(element, 'Time range');
    const [from, to] = range?.querySelectorAll('input') ?? [];
    const form = range?.querySelector('form');
    if (from === undefined || to === undefined || form == null) {
      throw new Error('no form');
    }
    const end = new Date(to.value).getTime();
    expect(end).toBe(Math.floor(NOW / 1000) * 1000);
    [from.value, to.value] = [to.value, from.value];
    form.requestSubmit();
    expect(to.validationMessage).toContain('after the start');
    [from.value, to.value] = [to.value, from.value];
    form.dispatchEvent(new Event('input'));
    form.requestSubmit();
    expect(address()).toBe(`from=${end - 120_000}&to=${end}`);
    expect(range?.querySelector('summary')?.textContent).toBe('Custom: 2\u00a0min');
  });

  it('menu without room below opens upward', () => {
    const { element } = showDashboard(1);
    const menu = element.querySelector<HTMLElement>('.gpumon-controls .gpumon-menu');
    if (menu !== null) {
      menu.getBoundingClientRect = () => new DOMRect(10, innerHeight - 40, 60, 20);
    }
    vi.spyOn(Element.prototype, 'scrollHeight', 'get').mockReturnValue(300);
    toggleMenu(element, 'Time range');
    expect(menu?.querySelector('[data-up]')).not.toBeNull();
  });
});

describe('lane', () => {
  it('annotation rows show conditions by GPU', () => {
    const { element, store, render } = showDashboard(4);
    const texts = (selector: string): string[] =>
      [...element.querySelectorAll(`.gpumon-lane ${selector}`)].map((one) => one.textContent);
    expect(texts('.gpumon-lane-label > span')).toEqual(['Marks', 'Conditions', '']);
    const condition: Condition = {
      condition: 'held_by_nobody',
      severity: 'notice',
      since_ms: NOW - 60_000,
      bytes: GIB,
      text: '',
    };
    const gpus = [0, 1, 2, 3].map((index) =>
      makeGpu(index, { conditions: index === 0 ? [] : [{ ...condition, bytes: index * GIB }] }),
    );
    store.apply({ type: 'sample', ...makeSample(NOW + 1, gpus) });
    render();
    expect(texts('.gpumon-lane-label > span')).toEqual(['Marks', 'GPU 1', 'GPU 2']);
    expect(texts('.gpumon-lane-band')[0]).not.toBe('');
    const more = element.querySelector<HTMLButtonElement>('.gpumon-lane-more');
    expect(more?.textContent).toBe('+1');
    more?.click();
    render();
    expect(texts('.gpumon-lane-label > span')).toEqual(['Marks', 'GPU 1', 'GPU 2', 'GPU 3']);
  });

  it('unsaved mark is shown as a flag', () => {
    const { element } = showDashboard(1, '', vi.fn<Request>());
    element.dispatchEvent(new KeyboardEvent('keydown', { key: 'm' }));
    expect(element.querySelector('.gpumon-lane-flag')?.textContent).toBe('…');
  });
});

it('charts are resized by keys on one handle', () => {
  const { element, address } = showDashboard(2);
  const handles = [...element.querySelectorAll<HTMLElement>('[role=separator]')];
  expect(handles.filter(({ tabIndex }) => tabIndex === 0)).toEqual(handles.slice(0, 1));
  const type = (key: string): void => {
    handles[0]?.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
  };
  type('ArrowDown');
  expect(address()).toBe('height=132');
  expect(handles[0]?.getAttribute('aria-valuenow')).toBe('132');
  type('ArrowUp');
  type('ArrowUp');
  expect(address()).toBe('height=92');
  handles[0]?.dispatchEvent(new Event('dblclick'));
  expect(address()).toBe('');
});

describe('keys', () => {
  const type = (target: Element, key: string): void => {
    target.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
  };

  it('keys control charts after click in legend', () => {
    const { element, address } = showDashboard(2, '', vi.fn<Request>());
    const [first] = legendButtons(element);
    if (first === undefined) {
      throw new Error('no legend');
    }
    first.focus();
    first.dispatchEvent(new MouseEvent('click', { bubbles: true, detail: 1 }));
    expect(document.activeElement).toBe(element);
    first.focus();
    type(first, 'y');
    expect(address()).toContain('fit=1');
    type(first, '+');
    expect(address()).toContain('span=1');
    type(first, 'm');
    expect(element.querySelector('.gpumon-mark-form')?.closest('details')?.open).toBe(true);
    type(first, '?');
    expect(element.querySelector('.gpumon-shortcuts')?.closest('details')?.open).toBe(true);
  });

  it('charts ignore keys for buttons and text', () => {
    const { element, address } = showDashboard(2, '', vi.fn<Request>());
    const before = address();
    const [first] = legendButtons(element);
    for (const [menu, selector, key] of [
      [null, null, ' '],
      ['Add mark', '.gpumon-mark-form input', 'y'],
      ['Charts', '.gpumon-menu select', '+'],
    ] as const) {
      const target = menu === null ? first : toggleMenu(element, menu)?.querySelector(selector);
      expect(target).not.toBeNull();
      if (target != null) {
        type(target, key);
      }
    }
    expect(address()).toBe(before);
  });
});

describe('marks', () => {
  const type = (element: HTMLElement, key: string): void => {
    element.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
  };

  it('key adds mark, and server error is shown', async () => {
    const request = vi.fn<Request>();
    const { element } = showDashboard(1, '', request);
    type(element, 'm');
    const form = element.querySelector<HTMLFormElement>('.gpumon-mark-form');
    const menu = form?.closest('details');
    const input = form?.querySelector('input');
    expect(menu?.open).toBe(true);
    expect(document.activeElement).toBe(input);
    if (input != null) {
      input.value = 'epoch 3';
      input.dispatchEvent(new Event('input', { bubbles: true }));
    }

    request.mockResolvedValueOnce(
      new Response('only the user who started this server\n', { status: 403 }),
    );
    form?.requestSubmit();
    await vi.waitFor(() =>
      expect(form?.querySelector('[role=alert]')?.textContent).toBe(
        'only the user who started this server',
      ),
    );
    expect(menu?.open).toBe(true);

    request.mockResolvedValueOnce(new Response('{}', { status: 201 }));
    form?.requestSubmit();
    await vi.waitFor(() => expect(menu?.open).toBe(false));
    expect(document.activeElement).toBe(element);
    const [path, init] = request.mock.lastCall ?? [];
    expect([path, init?.method, init?.headers]).toEqual([
      'api/v1/marks',
      'POST',
      { 'X-Gpumon': 'run' },
    ]);
    expect(JSON.parse(init?.body as string)).toEqual({ text: 'epoch 3', at_ms: NOW });
  });

  it('mark key does nothing without a server', () => {
    const { element } = showDashboard(1);
    type(element, 'm');
    expect(element.querySelector('.gpumon-mark-form')).toBeNull();
  });
});

it('alert count filters to GPUs with alerts', () => {
  const { element, store, render, address } = showDashboard(3);
  const lost = { state: 'lost' as const, since_ms: NOW };
  const gpus = [makeGpu(0), makeGpu(1, { health: lost }), makeGpu(2)];
  store.apply(makeHello({ inventory: makeInventory(3), sample: makeSample(NOW, gpus) }));
  render();
  const chip = (): HTMLButtonElement | null =>
    element.querySelector('[data-testid=gpumon-head-critical]');
  expect(chip()?.textContent).toBe('1 critical');
  chip()?.click();
  expect(address()).toBe('gpu=1');
  expect(chip()?.getAttribute('aria-pressed')).toBe('true');
  chip()?.click();
  expect(address()).toBe('');
});
