// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { Store } from '../model/store';
import '../testing/dialog';
import { makeDetails } from '../testing/details';
import {
  GIB,
  makeGpu,
  makeHello,
  makeInventory,
  makeLimits,
  makeMigDevice,
  NOW,
  makeProcess,
  makeSample,
  makeThrottledCondition,
  makeUnifiedGpu,
} from '../testing/frames';
import type { Event, GpuSample } from '../wire';
import { Overview } from './overview';

let store: Store;
let overview: Overview;
/** The paths of notebooks and consoles on this Jupyter server, by kernel ID. */
let paths: Map<string, string>;
const notebooks = {
  pathOf: (kernelId: string) => paths.get(kernelId) ?? null,
  open: vi.fn(),
  openMenu: vi.fn(),
};

beforeEach(() => {
  vi.useFakeTimers();
  vi.setSystemTime(NOW);
  paths = new Map([['k1', 'new.ipynb']]);
  store = new Store();
  store.phase = { phase: 'open' };
  overview = new Overview(store, {
    title: 'GPUs',
    connectingMessage: 'Wait.',
    notebooks,
    invalidate: () => overview.render(),
    onRetry: () => undefined,
  });
  document.body.append(overview.element);
});

afterEach(() => {
  overview.dispose();
  vi.useRealTimers();
});

function show(...gpus: GpuSample[]): void {
  store.apply(makeHello({ inventory: makeInventory(gpus.length), sample: makeSample(NOW, gpus) }));
  overview.render();
}

function find(selector: string): HTMLElement {
  const found = overview.element.querySelector<HTMLElement>(selector);
  if (found === null) {
    throw new Error(`nothing matches ${selector}`);
  }
  return found;
}

function text(selector: string): string {
  return find(selector).textContent.replaceAll('\u00a0', ' ');
}

/** Clicks an element, and renders the changed state of components. */
function click(element: HTMLElement | null | undefined): void {
  element?.click();
  overview.render();
}

describe('overview reading', () => {
  it('reading shows its value', () => {
    show(makeGpu(0));
    expect(text('[data-reading="utilization.gpu_percent"]')).toBe('96 %');
    expect(text('[data-metric="memory"] .gpumon-value')).toBe('78.0 / 140 GiB');
    expect(text('[data-metric="power"] .gpumon-value')).toBe('692 / 700 W');
    expect(text('[data-metric="temperature"] .gpumon-value')).toBe('64 °C');
  });

  it('missing reading is dash with reason, never 0', () => {
    const power = {
      ...makeGpu(0).power,
      draw_watts: { absent: 'no_permission' },
      limit_watts: { absent: 'not_supported' },
    } as const;
    show(makeGpu(0, { power }));
    const value = find('[data-metric="power"] .gpumon-value');
    expect(text('[data-reading="power.draw_watts"]')).toBe('–');
    expect(value.title).toContain('needs permission');
    expect(value.textContent).toContain('needs permission');
    expect(value.textContent).not.toContain('0');
  });

  it('value near its limit is colored', () => {
    const nearIn = (...gpus: GpuSample[]): (string | undefined)[] => {
      show(...gpus);
      const near = [
        ...overview.element.querySelectorAll<HTMLElement>('.gpumon-cell [data-near-limit]'),
      ];
      return near.map(
        (value) => value.querySelector<HTMLElement>('[data-reading]')?.dataset.reading,
      );
    };
    const of = (used: number, watts: number, celsius: number): GpuSample =>
      makeGpu(0, {
        memory: { ...makeGpu(0).memory, used_bytes: used * GIB },
        power: { ...makeGpu(0).power, draw_watts: watts },
        temperature: { ...makeGpu(0).temperature, gpu_celsius: celsius },
      });
    expect(nearIn(of(111, 629, 80))).toEqual([]);
    expect(nearIn(of(112, 630, 81))).toEqual([
      'memory.used_bytes',
      'power.draw_watts',
      'temperature.gpu_celsius',
    ]);
  });

  it('unified memory limit uses available amount', () => {
    const isNear = (): boolean =>
      find('[data-metric="memory"] .gpumon-value').hasAttribute('data-near-limit');
    show(makeUnifiedGpu(0, 75));
    expect(isNear()).toBe(false);
    show(makeUnifiedGpu(0, 76));
    expect(isNear()).toBe(true);
  });

  it('old reading shows its time', () => {
    show(
      makeGpu(0, {
        temperature: {
          ...makeGpu(0).temperature,
          gpu_celsius: { value: 64, at_ms: NOW - 120_000 },
        },
      }),
    );
    const value = find('[data-metric="temperature"] .gpumon-value');
    expect(value.hasAttribute('data-stale')).toBe(true);
    expect(value.title.replaceAll('\u00a0', ' ')).toBe('read 2 min ago');
  });
});

describe('overview GPU', () => {
  it('lost GPU keeps position, showing time and advice', () => {
    show(makeGpu(0), makeGpu(1), makeGpu(2));
    const cards = [...overview.element.querySelectorAll('[data-gpu-index]')];
    show(makeGpu(0), makeGpu(1, { health: { state: 'lost', since_ms: NOW } }), makeGpu(2));
    expect([...overview.element.querySelectorAll('[data-gpu-index]')]).toEqual(cards);
    const lost = find('[data-gpu-index="1"]');
    expect(lost.dataset.gpuHealth).toBe('lost');
    expect(lost.querySelector('[data-testid="gpumon-gpu-state"]')?.textContent).toMatch(
      /^lost \d\d:\d\d:\d\d$/,
    );
    click(lost.querySelector<HTMLElement>('.gpumon-toggle'));
    expect(lost.querySelector('.gpumon-alert')?.textContent).toMatch(
      /lost since \d\d:\d\d:\d\d.*reboot/,
    );
    expect(find('[role="status"]').textContent).toContain('GPU 1: lost');
  });

  it('card opens and closes', async () => {
    show(makeGpu(0));
    const toggle = find('.gpumon-toggle');
    const details = (): Element | null => overview.element.querySelector('.gpumon-gpu-details');
    expect([toggle.getAttribute('aria-expanded'), details()]).toEqual(['false', null]);
    click(toggle);
    await vi.dynamicImportSettled();
    overview.render();
    expect(toggle.getAttribute('aria-expanded')).toBe('true');
    expect(text('[data-reading="clocks.sm_mhz"]')).toBe('1,980 MHz');
    click(toggle);
    expect(details()).toBeNull();
  });

  it('alerts are sorted, with shape, word and time', () => {
    show(
      makeGpu(0, {
        conditions: [
          makeThrottledCondition('warning'),
          makeThrottledCondition('critical', NOW - 120_000),
        ],
      }),
    );
    expect(text('[data-testid="gpumon-gpu-state"]')).toBe(
      'hardware thermal slowdown, check the cooling',
    );
    click(find('.gpumon-toggle'));
    const lines = [...overview.element.querySelectorAll<HTMLElement>('.gpumon-alert')];
    expect(lines.map((line) => line.dataset.level)).toEqual(['critical', 'warning']);
    expect(lines[0]?.textContent.replaceAll('\u00a0', ' ')).toMatch(
      /^Critical: Clocks reduced: hardware thermal slowdown \(64 °C\), check the cooling\. \(since \d\d:\d\d:\d\d, for 2 min\)$/,
    );
    expect(lines[0]?.title).toContain('since');
    expect(lines[0]?.querySelector('.gpumon-severity-icon')).not.toBeNull();
    expect(find('[data-gpu-index="0"]').dataset.worstLevel).toBe('critical');
    expect(find('[role="status"]').textContent).toContain('Critical: GPU 0: Clocks reduced');
  });

  it('notice does not change color of GPU card', () => {
    show(makeGpu(0, { conditions: [makeThrottledCondition('notice')] }));
    expect(find('[data-gpu-index="0"]').dataset.worstLevel).toBeUndefined();
    expect(find('[role="status"]').textContent).not.toContain('clocks');
    show(makeGpu(0, { conditions: [makeThrottledCondition('warning')] }));
    expect(find('[data-gpu-index="0"]').dataset.worstLevel).toBe('warning');
    show(makeGpu(0));
    expect(find('[data-gpu-index="0"]').dataset.worstLevel).toBeUndefined();
    expect(overview.element.querySelector('.gpumon-alerts')).toBeNull();
  });

  it('reason for reduced clocks is shown once', () => {
    show(
      makeGpu(0, {
        throttle_reasons: ['sw_power_cap'],
        conditions: [makeThrottledCondition('notice')],
      }),
    );
    expect(text('[data-testid="gpumon-gpu-state"]')).toBe('power-capped');
    expect(overview.element.querySelector('.gpumon-alerts')).toBeNull();
    show(makeGpu(0, { throttle_reasons: ['gpu_idle'] }));
    expect(text('[data-testid="gpumon-gpu-state"]')).toBe('idle');
  });

  it('details open on demand and list unsupported ones', async () => {
    store.apply(
      makeHello({
        inventory: makeInventory(1),
        sample: makeSample(NOW, [makeGpu(0)]),
        details: [makeDetails(0)],
      }),
    );
    overview.render();
    click(find('.gpumon-toggle'));
    await vi.dynamicImportSettled();
    overview.render();
    expect(overview.element.querySelector('[data-reading="board.serial"]')).toBeNull();
    click(find('.gpumon-more'));
    expect(text('[data-reading="board.serial"]')).toBe('1650824000123');
    expect(text('[data-reading="ecc.volatile"]')).toBe('no errors');
    expect(text('[data-testid="gpumon-missing"]')).toMatch(
      /^Not available with this board or driver: .*Fans/,
    );
    store.apply({ type: 'details', ...makeDetails(0, { recovery_action: 'gpu_reset' }) });
    overview.render();
    expect(text('[data-reading="recovery_action"]')).toBe('reset the GPU');
  });

  it('card shows what limits the GPU', () => {
    const line = (): string | null =>
      overview.element
        .querySelector('[data-testid="gpumon-limit"]')
        ?.textContent.replaceAll('\u00a0', ' ') ?? null;
    show(makeGpu(0, { throttle_reasons: ['sw_power_cap'] }));
    expect(line()).toBe('Tensor-bound 62 %: Tensor cores are busy 58 % of the time.');
    expect(find('[data-testid="gpumon-limit"]').title).toContain('Narrower types');
    expect(find('[data-testid="gpumon-limit"]').dataset.level).toBeUndefined();
    show(makeGpu(0, { limits: makeLimits({ confidence: 'low' }) }));
    expect(line()).toBe('Tensor-bound 62 %, latency-bound 26 %');
    const { textContent, title } = find('[data-testid="gpumon-limit"]');
    expect(title).toBe(textContent);
    // The line keeps its height while nothing limits the GPU, or before the first window ends.
    show(makeGpu(0, { limits: makeLimits({ main: 'idle' }) }));
    expect(line()).toBe('');
    show(makeGpu(0, { limits: { absent: 'warming_up' } }));
    expect(line()).toBe('');
    show(makeGpu(0, { limits: { absent: 'not_supported' } }));
    expect(line()).toBeNull();
  });

  it('outdated limits are not shown', () => {
    show(makeGpu(0));
    expect(text('[data-testid="gpumon-limit"]')).not.toBe('');
    vi.setSystemTime(NOW + 30_000);
    overview.render();
    expect(text('[data-testid="gpumon-limit"]')).toBe('');
  });

  it('available unified memory is shown', () => {
    show(makeUnifiedGpu(0, 41), makeGpu(1));
    expect(overview.element.querySelectorAll('.gpumon-available')).toHaveLength(1);
    expect(text('.gpumon-available')).toBe('Unified memory: 59.0 GiB available');
    expect(text('[data-metric="memory"] .gpumon-label')).toBe('Unified memory');
    const bar = find('[data-testid="gpumon-memory-bar"]');
    expect(bar.title).toMatch(/^Unified memory, shared with the CPU: /);
    expect(bar.getAttribute('aria-label')).toContain(bar.title);
    const system = find('[data-paint="system"]');
    expect(system.title.split('\n')).toEqual(['rest of the system: 20.0\u00a0GiB', bar.title]);
    click(find('.gpumon-toggle'));
    expect(text('.gpumon-available')).toBe('59.0 GiB available');
  });

  it('MIG devices are shown', async () => {
    show(makeGpu(0, { mig_devices: [makeMigDevice(0), makeMigDevice(1)] }));
    click(find('.gpumon-toggle'));
    await vi.dynamicImportSettled();
    overview.render();
    expect(overview.element.querySelectorAll('[data-mig-uuid]')).toHaveLength(2);
    expect(text('[data-mig-uuid="MIG-0"] [data-reading="mig.memory.used_bytes"]')).toBe('4.00');
    show(makeGpu(0));
    expect(overview.element.querySelectorAll('[data-mig-uuid]')).toHaveLength(0);
  });

  it('pointing at a past time shows past values', () => {
    show(makeGpu(0));
    vi.setSystemTime(NOW + 1000);
    store.apply({
      type: 'sample',
      ...makeSample(NOW + 1000, [
        makeGpu(0, { utilization: { ...makeGpu(0).utilization, gpu_percent: 5 } }),
      ]),
    });
    overview.render();
    const card = find('[data-gpu-index="0"]');
    expect(text('[data-reading="utilization.gpu_percent"]')).toBe('5 %');
    card.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft' }));
    expect(text('[data-reading="utilization.gpu_percent"]')).toBe('96 %');
    card.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }));
    expect(text('[data-reading="utilization.gpu_percent"]')).toBe('5 %');
  });
});

describe('overview processes', () => {
  it('hostile process names are harmless text', () => {
    const name = '<img src=x onerror=alert(1)>\u202etxt.exe\u0007';
    show(
      makeGpu(0, {
        processes: [makeProcess(7, { name, command: `${name} --evil`, user: '<b>root</b>' })],
      }),
    );
    const row = find('[data-pid="7"]');
    expect(row.querySelector('img, b, script')).toBeNull();
    const shown = row.querySelector('[data-testid="gpumon-process-name"]');
    expect(shown?.textContent).toBe('<img src=x onerror=alert(1)>\ufffdtxt.exe\ufffd');
    expect(overview.element.textContent).not.toContain('\u202e');
  });

  it('process names are isolated from other text', () => {
    show(makeGpu(0, { processes: [makeProcess(7, { name: '\u05e9.py', user: '\u05d0' })] }));
    const isolated = [...find('[data-pid="7"]').querySelectorAll('bdi')];
    expect(isolated.map(({ textContent }) => textContent)).toEqual(['\u05d0', '\u05e9.py']);
  });

  it('pointing at a process highlights its memory', () => {
    show(makeGpu(0, { processes: [makeProcess(7), makeProcess(8, { memory_bytes: 5 * GIB })] }));
    find('[data-pid="8"]').dispatchEvent(new Event('pointerenter'));
    expect(find('.gpumon-bar').dataset.highlighting).toBe('');
    expect(overview.element.querySelectorAll('[data-highlighted]')).toHaveLength(1);
    find('[data-pid="8"]').dispatchEvent(new Event('pointerleave'));
    expect(overview.element.querySelectorAll('[data-highlighted]')).toHaveLength(0);
  });

  it('unknown process memory is a dash', () => {
    show(makeGpu(0, { processes: [makeProcess(7, { memory_bytes: { absent: 'unknown' } })] }));
    expect(text('[data-pid="7"] [data-reading="process.memory_bytes"]')).toBe('–');
  });

  it('host memory shows when it was read', () => {
    const elsewhere = makeProcess(8, { host_memory_bytes: { absent: 'not_in_proc' } });
    show(makeGpu(0, { processes: [makeProcess(7), elsewhere] }));
    const cells = [7, 8].map((pid) =>
      find(`[data-pid="${pid}"] [data-reading="process.host_memory_bytes"]`),
    );
    expect(cells.map((cell) => cell.textContent)).toEqual(['3.0\u00a0GiB', '–']);
    expect(find('[data-pid="7"] .gpumon-narrow').title).toContain('host memory 3.0');
    expect(cells.map((cell) => cell.parentElement?.title)).toEqual([
      'read 2\u00a0s ago',
      expect.stringContaining('another PID namespace'),
    ]);
  });

  it('user and age are shown, command on demand', () => {
    const worker = makeProcess(8, {
      name: 'worker',
      owner: {
        parents: [],
        notebook: { kernel_id: 'k9', path: { absent: 'unknown' }, kernel_pid: 7 },
      },
    });
    show(
      makeGpu(0, { processes: [{ ...worker, pid: 7, name: 'ipykernel' }, worker] }),
      makeGpu(1, { processes: [makeProcess(9)] }),
    );
    expect(text('[data-pid="9"] .gpumon-narrow')).toBe('ana · 1 h');
    expect(text('[data-pid="9"] .gpumon-col-age')).toBe('1 h');
    expect(find('[data-pid="9"] .gpumon-col-age').title).toMatch(/^started \d\d:42:07$/);
    expect(overview.element.querySelector('.gpumon-process-more')).toBeNull();
    click(find('[data-pid="7"] [data-testid="gpumon-process-name"]'));
    expect(text('[data-pid="7"] [data-testid="gpumon-process-more"]')).toMatch(
      /\npython3 train.py\n\+ worker \(PID 8\)$/,
    );
    expect(
      find('[data-pid="7"] [data-testid="gpumon-process-name"]').getAttribute('aria-expanded'),
    ).toBe('true');
  });

  it('many processes are listed on demand', () => {
    show(
      makeGpu(0, {
        processes: Array.from({ length: 30 }, (_, i) => makeProcess(i + 1, { started_ms: i })),
      }),
    );
    expect(overview.element.querySelectorAll('[data-pid]')).toHaveLength(24);
    click(
      [...overview.element.querySelectorAll('button')].find(
        ({ textContent }) => textContent === 'Show all 30',
      ),
    );
    expect(overview.element.querySelectorAll('[data-pid]')).toHaveLength(30);
  });

  it('unlisted processes are counted in columns', () => {
    show(makeGpu(0, { processes: [makeProcess(1)], processes_omitted: 12 }));
    const columns = overview.element.querySelectorAll(
      '[aria-label="Processes"] .gpumon-part:not([hidden]) th',
    ).length;
    const cells = [
      ...(find('.gpumon-unreadable').parentElement?.children ?? []),
    ] as HTMLTableCellElement[];
    expect(cells.reduce((sum, { colSpan }) => sum + colSpan, 0)).toBe(columns);
  });

  it('processes of other namespaces are noted', () => {
    show(makeGpu(0, { processes: [], unlisted_memory_bytes: 1.1 * 2 ** 30 }));
    const text = find('.gpumon-unreadable').textContent;
    expect(text.replace(/\s/g, ' ')).toBe(
      'processes of other namespaces are not visible: 1.10 GiB in use',
    );
  });

  it('rows of running processes are reused', () => {
    show(makeGpu(0, { processes: [makeProcess(7), makeProcess(8, { memory_bytes: 5 })] }));
    const row = find('[data-pid="8"]');
    show(makeGpu(0, { processes: [makeProcess(8, { memory_bytes: 5 })] }));
    expect(overview.element.querySelector('[data-pid="7"]')).toBeNull();
    expect(find('[data-pid="8"]')).toBe(row);
  });
});

describe('overview notebooks', () => {
  const of = (kernel_id: string, pid: number) =>
    makeProcess(pid, {
      owner: { parents: [], notebook: { kernel_id, path: 'work/old.ipynb', kernel_pid: 7 } },
    });

  it('notebooks are first, with their child processes', () => {
    show(makeGpu(0, { processes: [of('k1', 7), of('k1', 8), makeProcess(9)] }));
    const rows = (table: string) =>
      overview.element.querySelectorAll(`[data-testid="${table}"] tbody tr`);
    expect([rows('gpumon-notebook-table').length, rows('gpumon-process-table').length]).toEqual([
      1, 1,
    ]);
    expect(
      [...overview.element.querySelectorAll('h2')].map((heading) => heading.textContent),
    ).toContain('Other processes');
    expect(text('[data-pid="7"]')).toContain('1 child process');
    show(makeGpu(0, { processes: [makeProcess(9)] }));
    expect(text('.gpumon-part:not([hidden]) h2')).toBe('Processes');
  });

  it('notebooks of this JupyterLab have name and actions', () => {
    show(makeGpu(0, { processes: [of('k1', 7), of('elsewhere', 8)] }));
    const buttons = (pid: string) => [
      ...find(`[data-pid="${pid}"]`).querySelectorAll<HTMLElement>('button:not([hidden])'),
    ];
    const [go, menu] = buttons('7');
    expect(go?.textContent).toBe('new.ipynb');
    expect(menu?.getAttribute('aria-label')).toBe('Actions for new.ipynb');
    go?.click();
    menu?.click();
    expect(notebooks.open).toHaveBeenCalledWith('k1');
    expect(notebooks.openMenu).toHaveBeenCalledWith('k1', menu);
    expect(buttons('8').map(({ textContent }) => textContent)).toEqual(['old.ipynb']);
    buttons('8')[0]?.click();
    expect(notebooks.open).toHaveBeenCalledTimes(1);
  });

  it('notebooks of same name show their folders', () => {
    paths = new Map([
      ['k1', 'first/train.ipynb'],
      ['k2', 'second/train.ipynb'],
    ]);
    const held = { memory_bytes: 60 * GIB };
    show(
      makeGpu(0, {
        processes: [
          { ...of('k1', 7), ...held },
          { ...of('k2', 8), ...held },
        ],
      }),
    );
    for (const [pid, name] of [
      ['7', 'first/train.ipynb'],
      ['8', 'second/train.ipynb'],
    ]) {
      const button = find(`[data-pid="${pid}"] .gpumon-process-name`);
      expect(button.textContent).toBe(name);
      expect(button.title).toContain(`Go to ${name} (PID ${pid})`);
    }
    const parts = [...overview.element.querySelectorAll<HTMLElement>('.gpumon-bar-part')].map(
      ({ title }) => title,
    );
    expect(parts.map((title) => title.split(':')[0])).toEqual(
      expect.arrayContaining(['first/train.ipynb', 'second/train.ipynb']),
    );
  });

  it('notebooks and consoles have their own tables', () => {
    paths.set('k2', 'work/console-1-0d7c4dcc-22a5-44e5-a5b3-b2a0f5f3ae9c');
    show(makeGpu(0, { processes: [of('k1', 7), of('k2', 8), makeProcess(9)] }));
    const names = (table: string): (string | null)[] =>
      [
        ...find(`[data-testid="gpumon-${table}-table"]`).querySelectorAll('.gpumon-process-name'),
      ].map(({ textContent }) => textContent);
    expect(['notebook', 'console', 'process'].map(names)).toEqual([
      ['new.ipynb'],
      ['Console 1'],
      ['python3'],
    ]);
    click(find('[data-pid="8"] .gpumon-process-name'));
    expect(notebooks.open).toHaveBeenCalledWith('k2');
  });
});

describe('overview events', () => {
  const started: Event = {
    at_ms: NOW,
    gpu: { index: 0, uuid: 'GPU-0' },
    what: 'process_started',
    pid: 7,
    name: '<img src=x onerror=alert(1)>',
    user: 'ana',
    started_ms: NOW,
  };

  function listEventTexts(): string[] {
    return [...overview.element.querySelectorAll('.gpumon-event-text')].map(
      (line) => line.textContent,
    );
  }

  function findButton(label: RegExp): HTMLElement {
    const found = [...overview.element.querySelectorAll('button')].find((one) =>
      label.test(one.textContent),
    );
    if (found === undefined) {
      throw new Error(`no button says ${label}`);
    }
    return found;
  }

  it('events of first frame are listed, newest first', () => {
    store.apply(makeHello({ events: [{ at_ms: NOW - 5, gpu: null, what: 'mig_changed' }] }));
    store.apply({ type: 'event', at_ms: NOW, gpu: { index: 1, uuid: 'GPU-1' }, what: 'gpu_lost' });
    overview.render();
    expect(listEventTexts()).toEqual([
      'Critical: GPU lost (fallen off the bus)',
      'Notice: MIG configuration changed',
    ]);
    expect(text('.gpumon-event-gpu')).toBe('GPU 1');
    expect(find('.gpumon-event-time').getAttribute('datetime')).toBe(new Date(NOW).toISOString());
  });

  it('events use vendor terms', () => {
    store.apply(
      makeHello({
        inventory: makeInventory(2, 'nvidia', 'amd'),
        events: [0, 1].map((index) => ({
          at_ms: NOW - index,
          gpu: { index, uuid: null },
          what: 'mig_changed',
        })),
      }),
    );
    overview.render();
    expect(listEventTexts()).toEqual([
      'Notice: Partitions changed',
      'Notice: MIG configuration changed',
    ]);
  });

  it('process events are shown on demand as text', () => {
    store.apply(makeHello({ events: [started] }));
    overview.render();
    expect(listEventTexts()).toEqual([]);
    click(findButton(/^Processes/));
    expect(listEventTexts()).toEqual(['<img src=x onerror=alert(1)> (ana, PID 7) started']);
    expect(overview.element.querySelector('img')).toBeNull();
    expect(findButton(/^Processes/).getAttribute('aria-pressed')).toBe('true');
  });

  it('event list is short until expanded', () => {
    const events = Array.from({ length: 9 }, (_, i): Event => ({
      at_ms: NOW + i,
      gpu: null,
      what: 'mig_changed',
    }));
    store.apply(makeHello({ events }));
    overview.render();
    expect(listEventTexts()).toHaveLength(5);
    click(findButton(/^Show all 9$/));
    expect(listEventTexts()).toHaveLength(9);
    click(findButton(/^Show fewer$/));
    expect(listEventTexts()).toHaveLength(5);
  });
});

describe('overview as a whole', () => {
  it('simulated values are labeled', () => {
    show(makeGpu(0));
    expect(overview.element.querySelector('[data-testid="gpumon-simulated"]')).toBeNull();
    const simulated = makeInventory(1);
    simulated.platform.source = 'simulated';
    store.apply({ type: 'inventory', ...simulated });
    overview.render();
    expect(text('[data-testid="gpumon-simulated"]')).toBe('simulated');
  });

  it('overview header has charts button and menu', () => {
    const onOpenCharts = vi.fn();
    const shown: Overview = new Overview(store, {
      title: '',
      invalidate: () => shown.render(),
      onRetry: vi.fn(),
      onOpenCharts,
      onSettings: vi.fn(),
    });
    store.apply(makeHello());
    shown.render();
    const actions = [...shown.element.querySelectorAll('.gpumon-head-actions [data-testid]')];
    expect(actions.map(({ textContent }) => textContent)).toEqual([
      'Charts',
      'Settings…',
      'Take the tour',
    ]);
    shown.element.querySelector<HTMLElement>('[data-testid="gpumon-charts"]')?.click();
    expect(onOpenCharts).toHaveBeenCalledTimes(1);
    shown.dispose();
  });

  it('missing data is explained', () => {
    overview.render();
    expect(overview.element.dataset.gpumonState).toBe('connecting');
    expect(text('[data-testid="gpumon-notice"]')).toContain('Wait.');
    show(makeGpu(0));
    expect(overview.element.dataset.gpumonState).toBe('live');
    expect(find('[data-testid="gpumon-notice"]').hidden).toBe(true);
  });

  it('tour covers only visible targets', async () => {
    vi.useRealTimers();
    const options = {
      title: '',
      invalidate: () => shown.render(),
      onRetry: vi.fn(),
      onOpenGpu: vi.fn(),
    };
    const shown: Overview = new Overview(store, options);
    const titles = async (): Promise<string | undefined> => {
      await vi.waitFor(() => expect(shown.element.querySelector('.gpumon-tour')).not.toBeNull());
      const place = shown.element.querySelector('.gpumon-tour .gpumon-run-text')?.textContent;
      shown.element.querySelector<HTMLDialogElement>('.gpumon-tour')?.close();
      return place;
    };
    shown.showTour();
    await import('./tour');
    expect(shown.element.querySelector('.gpumon-tour')).toBeNull();
    store.apply(makeHello());
    shown.render();
    expect(await titles()).toBe('1 of 3');
    store.apply(
      makeHello({
        inventory: makeInventory(8),
        sample: makeSample(
          NOW,
          Array.from({ length: 8 }, (_, i) => makeGpu(i)),
        ),
      }),
    );
    shown.render();
    shown.showTour();
    expect(await titles()).toBe('1 of 2');
    shown.dispose();
  });

  it('restart reason of the collector is shown', () => {
    show(makeGpu(0));
    store.apply({
      type: 'collector',
      state: 'restarting',
      since_ms: NOW,
      message: 'it was killed by signal 9',
    });
    overview.render();
    expect(overview.element.dataset.gpumonState).toBe('collector-restarting');
    expect(text('[data-testid="gpumon-notice"]')).toContain('It was killed by signal 9');
  });

  it('pause notice suggests resuming instead of reporting error', () => {
    show(makeGpu(0));
    store.apply({ type: 'collector', state: 'paused', since_ms: NOW, message: null });
    overview.render();
    expect(overview.element.dataset.gpumonState).toBe('collector-paused');
    expect(find('[data-testid="gpumon-notice"]').dataset.level).toBe('paused');
    expect(text('[data-testid="gpumon-notice"]')).toContain('Paused: gpumon has released the GPUs');
    expect(text('.gpumon-command')).toBe('gpumon resume');
  });
});
