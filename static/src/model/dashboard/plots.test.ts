import { describe, expect, it } from 'vitest';

import {
  GIB,
  makeGpu,
  makeInventory,
  makeLimits,
  makeMigDevice,
  NOW,
  makeProcess,
  makeSample,
  makeUnifiedGpu,
} from '../../testing/frames';
import type { GpuSample, Process, Vendor } from '../../wire';
import { gpusOf } from '../gpu';
import { ColorSlots } from '../color-slots';
import { holderRows } from '../holders';
import { PastHolders } from './past-holders';
import { sectionsOf, type Plot, type Section } from './plots';
import { DEFAULT_STATE, type DashboardState } from './state';

function makeSections(
  gpus: GpuSample[],
  state: Partial<DashboardState> = {},
  ...vendors: Vendor[]
): Section[] {
  const now = makeSample(NOW, gpus);
  const views = gpusOf(makeInventory(gpus.length, ...vendors), now);
  const past = new PastHolders();
  past.record(holderRows(views, new ColorSlots()), NOW);
  const holders = past.holdersSince(NOW - 1000, NOW);
  return sectionsOf({ state: { ...DEFAULT_STATE, ...state }, gpus: views, sample: now, holders });
}

function titlesOf(section: Section | undefined): string[] {
  return section?.plots.map(({ title }) => title) ?? [];
}

function findPlot(all: Section[], key: string): Plot | undefined {
  return all.flatMap(({ plots }) => plots).find((one) => one.key === key);
}

describe('charts of a dashboard', () => {
  it('separate layout gives each GPU its own charts', () => {
    const all = makeSections([makeGpu(0), makeGpu(1)], { layout: 'apart' });
    expect(all.map(({ title }) => title)).toEqual(['0 H200', '1 H200', 'Machine']);
    expect(titlesOf(all[0]).slice(0, 4)).toEqual(['Activity', 'Limited by', 'Memory', 'Power']);
    expect(titlesOf(all[2])).toEqual(['CPU', 'RAM', 'Disks', 'Network']);
  });

  it('unsupported charts are omitted and listed', () => {
    const absent = { absent: 'not_supported' } as const;
    const [first] = makeSections([
      makeGpu(0, {
        activity: absent,
        fan_percent: absent,
        nvlink: { rx_bytes_per_second: absent, tx_bytes_per_second: absent },
      }),
    ]);
    expect(titlesOf(first)).not.toContain('NVLink');
    expect(first?.missing).toEqual(['NVLink', 'Execution units', 'Fan']);
    expect(first?.plots[0]?.lines.map(({ label }) => label)).toEqual(['GPU utilization']);
  });

  it('metric without a responding GPU is omitted', () => {
    const lost = makeGpu(1, {
      health: { state: 'lost', since_ms: NOW },
      fan_percent: { absent: 'gpu_lost' },
    });
    const keys = (state: Partial<DashboardState>, ...gpus: GpuSample[]): string[] =>
      makeSections(gpus, state).flatMap(({ plots }) => plots.map(({ key }) => key));
    const others = makeGpu(0, { fan_percent: { absent: 'not_supported' } });
    expect(keys({ gpus: [1] }, others, lost)).not.toContain('gpu 1 fan');
    expect(keys({ gpus: [1] }, makeGpu(0, { fan_percent: 40 }), lost)).toContain('gpu 1 fan');
    expect(keys({ gpus: [1], charts: ['fan'] }, others, lost)).toContain('gpu 1 fan');
    expect(keys({}, { ...lost, index: 0 })).toContain('gpu 0 fan');
  });

  it('last values of a hung GPU are stale', () => {
    const hung = makeGpu(1, { health: { state: 'hung', since_ms: NOW } });
    const [first] = makeSections([makeGpu(0), hung]);
    expect(first?.plots[0]?.lines.map(({ isStale }) => isStale)).toEqual([false, true]);
  });

  it('charts have titles in vendor terms', () => {
    const nvlink = { rx_bytes_per_second: 1e9, tx_bytes_per_second: 1e9 };
    const divided = makeGpu(0, { nvlink, mig_devices: [makeMigDevice(0)] });
    const alone = titlesOf(makeSections([divided], {}, 'amd')[0]);
    expect(alone).toEqual(expect.arrayContaining(['XGMI', 'Partitions: Memory']));
    const pair = [divided, makeGpu(1, { nvlink })];
    const together = { layout: 'together' } as const;
    const links = (...vendors: Vendor[]): string[] =>
      titlesOf(makeSections(pair, together, ...vendors)[0]).slice(-2);
    expect(links('amd', 'amd')).toEqual(['XGMI RX', 'XGMI TX']);
    expect(links('nvidia', 'amd')).toEqual(['GPU link RX', 'GPU link TX']);
  });

  it('unified memory has its own title', () => {
    expect(titlesOf(makeSections([makeUnifiedGpu(0, 41)])[0])[2]).toBe('Unified memory');
    const together = { layout: 'together' } as const;
    const of = (...gpus: GpuSample[]): string[] => titlesOf(makeSections(gpus, together)[0]);
    expect(of(makeUnifiedGpu(0, 1), makeUnifiedGpu(1, 1))).toContain('Unified memory');
    expect(of(makeUnifiedGpu(0, 1), makeGpu(1))).toContain('Memory');
  });

  it('unresponsive GPU keeps its charts', () => {
    const lost = { absent: 'gpu_lost' } as const;
    const power = { ...makeGpu(0).power, draw_watts: lost, instant_watts: lost };
    expect(titlesOf(makeSections([makeGpu(0, { power })])[0])).toContain('Power');
  });

  it('charts mark the limits of values', () => {
    const [first] = makeSections([makeGpu(0)]);
    const limits = first?.plots
      .slice(0, 5)
      .map(({ key, limit, limitName }) => [key, limit, limitName]);
    expect(limits).toEqual([
      ['gpu 0 activity', null, undefined],
      ['gpu 0 limits', null, undefined],
      ['gpu 0 memory', 140 * GIB, undefined],
      ['gpu 0 power', 700, undefined],
      ['gpu 0 temperature', 89, 'slowdown'],
    ]);
    expect(
      findPlot(
        makeSections([makeGpu(0), makeGpu(1)], { layout: 'together' }),
        'all temperature.gpu_celsius',
      )?.limit,
    ).toBe(89);
  });

  it('memory chart stacks holders below the total', () => {
    const memory = findPlot(
      makeSections([makeGpu(0, { processes: [makeProcess(7)] })]),
      'gpu 0 memory',
    );
    expect(memory?.limit).toBe(140 * GIB);
    expect(memory?.lines.map(({ label }) => label)).toEqual(['In use']);
    expect(memory?.stack.length).toBeGreaterThan(0);
    expect(memory?.stack[0]?.series).toMatch(/^GPU-0 held /);
    const unheld = findPlot(makeSections([makeGpu(0, { processes: [] })]), 'gpu 0 memory');
    expect(unheld?.lines[0]?.color).toBe(memory?.lines[0]?.color);
  });

  it('causes that limit a GPU are stacked', () => {
    const absent = { absent: 'not_supported' } as const;
    const before = makeLimits({ memory_percent: absent, tensor_percent: absent });
    const [supported, partly] = [makeGpu(0), makeGpu(0, { limits: before })].map(
      (gpu) => makeSections([gpu])[0]?.plots[1],
    );
    expect(supported).toMatchObject({ title: 'Limited by', lines: [] });
    expect(supported?.stack.map(({ field, color }) => [field, color]).slice(0, 2)).toEqual([
      ['limits.idle_percent', 0],
      ['limits.host_percent', 1],
    ]);
    expect([supported?.stack.length, partly?.stack.length]).toEqual([12, 10]);
  });

  it('each GPU has its own chart of limits', () => {
    const { limits, ...unsupported } = makeGpu(0);
    expect(limits).toBeDefined();
    const gpus = [makeGpu(0), { ...unsupported, index: 1 }, makeGpu(2)];
    const keys = (charts: string[] | null): string[] =>
      makeSections(gpus, { layout: 'together', charts }).flatMap(({ plots }) =>
        plots.map(({ key, title }) => `${key}: ${title}`),
      );
    expect(keys(['limits', 'cpu'])).toEqual([
      'gpu 0 limits: GPU 0: Limited by',
      'gpu 2 limits: GPU 2: Limited by',
      'host cpu: CPU',
    ]);
    expect(keys(['limits.host_percent'])).toEqual(['all limits.host_percent: Host-bound']);
    expect(keys(null).join()).not.toContain('limits');
    expect(makeSections([unsupported])[0]?.missing).toContain('Limited by');
  });

  it('each overlaid chart shows one metric per GPU', () => {
    const all = makeSections([makeGpu(0), makeGpu(1), makeGpu(2)], {
      layout: 'together',
      gpus: [0, 2],
    });
    expect(all[0]?.title).toBe('2 GPUs');
    const power = findPlot(all, 'all power.draw_watts');
    expect(power?.lines.map(({ label, series }) => [label, series])).toEqual([
      ['0', 'GPU-0 power.draw_watts'],
      ['2', 'GPU-2 power.draw_watts'],
    ]);
  });

  it('selected charts are shown', () => {
    const all = makeSections([makeGpu(0), makeGpu(1)], { gpus: [1], charts: ['power', 'cpu'] });
    expect(all.flatMap(({ plots }) => plots.map(({ key }) => key))).toEqual([
      'gpu 1 power',
      'host cpu',
    ]);
  });
});

describe('past holders of a GPU', () => {
  it('ended memory holders are listed with 0 bytes', () => {
    const past = new PastHolders();
    const views = gpusOf(
      makeInventory(1),
      makeSample(NOW, [makeGpu(0, { processes: [makeProcess(7)] })]),
    );
    past.record(holderRows(views, new ColorSlots()), NOW);
    const later = NOW + 60_000;
    expect(past.holdersSince(NOW - 1000, later).get(0)?.[0]).toMatchObject({ memory_bytes: 0 });
    expect(past.holdersSince(NOW + 1000, later).get(0)).toEqual([]);
    past.prune(later);
    expect(past.holdersSince(0, later).size).toBe(0);
  });

  it('ended notebooks have distinct names', () => {
    const past = new PastHolders();
    const of = (pid: number, folder: string): Process => {
      const notebook = { kernel_id: folder, kernel_pid: pid, path: `${folder}/train.ipynb` };
      return makeProcess(pid, { owner: { parents: [], notebook } });
    };
    const views = gpusOf(
      makeInventory(1),
      makeSample(NOW, [makeGpu(0, { processes: [of(7, 'a')] })]),
    );
    const slots = new ColorSlots();
    past.record(holderRows(views, slots), NOW);
    past.addFormerHolders(
      new Map([['GPU-0', [{ process: of(8, 'b'), seen_ms: NOW - 5000 }]]]),
      views,
      slots,
    );
    const names = (from_ms: number, ...others: string[]): string[] | undefined =>
      past
        .holdersSince(from_ms, NOW, others)
        .get(0)
        ?.map(({ name }) => name);
    expect(names(NOW - 9000)).toEqual(['a/train.ipynb', 'b/train.ipynb']);
    expect(names(NOW - 1000)).toEqual(['train.ipynb']);
    expect(names(NOW - 1000, 'c/train.ipynb')).toEqual(['a/train.ipynb']);
    expect([past.pathOf('b'), past.pathOf('c')]).toEqual(['b/train.ipynb', null]);
  });
});
