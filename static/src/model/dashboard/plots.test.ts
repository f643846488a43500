import { describe, expect, it } from 'vitest';

import {
  GIB,
  gpu,
  inventory,
  migDevice,
  NOW,
  process,
  sample,
  makeUnifiedGpu,
} from '../../testing/frames';
import type { GpuSample, Process, Vendor } from '../../wire';
import { gpusOf } from '../gpu';
import { ColorSlots } from '../color-slots';
import { holderRows } from '../holders';
import { PastHolders } from './past-holders';
import { sectionsOf, type Plot, type Section } from './plots';
import { DEFAULT_STATE, type DashboardState } from './state';

function sectionsFor(
  gpus: GpuSample[],
  state: Partial<DashboardState> = {},
  ...vendors: Vendor[]
): Section[] {
  const now = sample(NOW, gpus);
  const views = gpusOf(inventory(gpus.length, ...vendors), now);
  const past = new PastHolders();
  past.record(holderRows(views, new ColorSlots()), NOW);
  const holders = past.since(NOW - 1000, NOW);
  return sectionsOf({ state: { ...DEFAULT_STATE, ...state }, gpus: views, sample: now, holders });
}

function titles(section: Section | undefined): string[] {
  return section?.plots.map(({ title }) => title) ?? [];
}

function plot(all: Section[], key: string): Plot | undefined {
  return all.flatMap(({ plots }) => plots).find((one) => one.key === key);
}

describe('charts of a dashboard', () => {
  it('each GPU has its charts on request', () => {
    const all = sectionsFor([gpu(0), gpu(1)], { layout: 'apart' });
    expect(all.map(({ title }) => title)).toEqual(['0 H200', '1 H200', 'Machine']);
    expect(titles(all[0]).slice(0, 4)).toEqual(['Activity', 'Memory', 'Power', 'Temperature']);
    expect(titles(all[2])).toEqual(['CPU', 'RAM', 'Disks', 'Network']);
  });

  it('unsupported charts are omitted and listed', () => {
    const absent = { absent: 'not_supported' } as const;
    const [first] = sectionsFor([
      gpu(0, {
        activity: absent,
        fan_percent: absent,
        nvlink: { rx_bytes_per_second: absent, tx_bytes_per_second: absent },
      }),
    ]);
    expect(titles(first)).not.toContain('NVLink');
    expect(first?.missing).toEqual(['NVLink', 'Execution units', 'Fan']);
    expect(first?.plots[0]?.lines.map(({ label }) => label)).toEqual(['GPU utilization']);
  });

  it('metric only of a lost GPU is omitted', () => {
    const lost = gpu(1, {
      health: { state: 'lost', since_ms: NOW },
      fan_percent: { absent: 'gpu_lost' },
    });
    const keys = (state: Partial<DashboardState>, ...gpus: GpuSample[]): string[] =>
      sectionsFor(gpus, state).flatMap(({ plots }) => plots.map(({ key }) => key));
    const others = gpu(0, { fan_percent: { absent: 'not_supported' } });
    expect(keys({ gpus: [1] }, others, lost)).not.toContain('gpu 1 fan');
    expect(keys({ gpus: [1] }, gpu(0, { fan_percent: 40 }), lost)).toContain('gpu 1 fan');
    expect(keys({ gpus: [1], charts: ['fan'] }, others, lost)).toContain('gpu 1 fan');
    expect(keys({}, { ...lost, index: 0 })).toContain('gpu 0 fan');
  });

  it('last values of a hung GPU are stale', () => {
    const hung = gpu(1, { health: { state: 'hung', since_ms: NOW } });
    const [first] = sectionsFor([gpu(0), hung]);
    expect(first?.plots[0]?.lines.map(({ isStale }) => isStale)).toEqual([false, true]);
  });

  it('charts have titles in vendor terms', () => {
    const nvlink = { rx_bytes_per_second: 1e9, tx_bytes_per_second: 1e9 };
    const divided = gpu(0, { nvlink, mig_devices: [migDevice(0)] });
    const alone = titles(sectionsFor([divided], {}, 'amd')[0]);
    expect(alone).toEqual(expect.arrayContaining(['XGMI', 'Partitions: Memory']));
    const pair = [divided, gpu(1, { nvlink })];
    const together = { layout: 'together' } as const;
    const links = (...vendors: Vendor[]): string[] =>
      titles(sectionsFor(pair, together, ...vendors)[0]).slice(-2);
    expect(links('amd', 'amd')).toEqual(['XGMI RX', 'XGMI TX']);
    expect(links('nvidia', 'amd')).toEqual(['GPU link RX', 'GPU link TX']);
  });

  it('unified memory has its own title', () => {
    expect(titles(sectionsFor([makeUnifiedGpu(0, 41)])[0])[1]).toBe('Unified memory');
    const together = { layout: 'together' } as const;
    const of = (...gpus: GpuSample[]): string[] => titles(sectionsFor(gpus, together)[0]);
    expect(of(makeUnifiedGpu(0, 1), makeUnifiedGpu(1, 1))).toContain('Unified memory');
    expect(of(makeUnifiedGpu(0, 1), gpu(1))).toContain('Memory');
  });

  it('unresponsive GPU keeps its charts', () => {
    const lost = { absent: 'gpu_lost' } as const;
    const power = { ...gpu(0).power, draw_watts: lost, instant_watts: lost };
    expect(titles(sectionsFor([gpu(0, { power })])[0])).toContain('Power');
  });

  it('charts mark the limits of values', () => {
    const [first] = sectionsFor([gpu(0)]);
    const limits = first?.plots
      .slice(0, 4)
      .map(({ key, limit, limitName }) => [key, limit, limitName]);
    expect(limits).toEqual([
      ['gpu 0 activity', null, undefined],
      ['gpu 0 memory', 140 * GIB, undefined],
      ['gpu 0 power', 700, undefined],
      ['gpu 0 temperature', 89, 'slowdown'],
    ]);
    expect(
      plot(sectionsFor([gpu(0), gpu(1)], { layout: 'together' }), 'all temperature.gpu_celsius')
        ?.limit,
    ).toBe(89);
  });

  it('memory chart stacks holders below the total', () => {
    const memory = plot(sectionsFor([gpu(0, { processes: [process(7)] })]), 'gpu 0 memory');
    expect(memory?.limit).toBe(140 * GIB);
    expect(memory?.lines.map(({ label }) => label)).toEqual(['In use']);
    expect(memory?.stack.length).toBeGreaterThan(0);
    expect(memory?.stack[0]?.series).toMatch(/^GPU-0 held /);
    const unheld = plot(sectionsFor([gpu(0, { processes: [] })]), 'gpu 0 memory');
    expect(unheld?.lines[0]?.color).toBe(memory?.lines[0]?.color);
  });

  it('overlaid charts have one metric each', () => {
    const all = sectionsFor([gpu(0), gpu(1), gpu(2)], { layout: 'together', gpus: [0, 2] });
    expect(all[0]?.title).toBe('2 GPUs');
    const power = plot(all, 'all power.draw_watts');
    expect(power?.lines.map(({ label, series }) => [label, series])).toEqual([
      ['0', 'GPU-0 power.draw_watts'],
      ['2', 'GPU-2 power.draw_watts'],
    ]);
  });

  it('selected charts are shown', () => {
    const all = sectionsFor([gpu(0), gpu(1)], { gpus: [1], charts: ['power', 'cpu'] });
    expect(all.flatMap(({ plots }) => plots.map(({ key }) => key))).toEqual([
      'gpu 1 power',
      'host cpu',
    ]);
  });
});

describe('past holders of a GPU', () => {
  it('past holders are named but use no memory', () => {
    const past = new PastHolders();
    const views = gpusOf(inventory(1), sample(NOW, [gpu(0, { processes: [process(7)] })]));
    past.record(holderRows(views, new ColorSlots()), NOW);
    const later = NOW + 60_000;
    expect(past.since(NOW - 1000, later).get(0)?.[0]).toMatchObject({ memory_bytes: 0 });
    expect(past.since(NOW + 1000, later).get(0)).toEqual([]);
    past.prune(later);
    expect(past.since(0, later).size).toBe(0);
  });

  it('ended notebooks have distinct names', () => {
    const past = new PastHolders();
    const of = (pid: number, folder: string): Process => {
      const notebook = { kernel_id: folder, kernel_pid: pid, path: `${folder}/train.ipynb` };
      return process(pid, { owner: { parents: [], notebook } });
    };
    const views = gpusOf(inventory(1), sample(NOW, [gpu(0, { processes: [of(7, 'a')] })]));
    const slots = new ColorSlots();
    past.record(holderRows(views, slots), NOW);
    past.recall(new Map([['GPU-0', [{ process: of(8, 'b'), seen_ms: NOW - 5000 }]]]), views, slots);
    const names = (from_ms: number, ...others: string[]): string[] | undefined =>
      past
        .since(from_ms, NOW, others)
        .get(0)
        ?.map(({ name }) => name);
    expect(names(NOW - 9000)).toEqual(['a/train.ipynb', 'b/train.ipynb']);
    expect(names(NOW - 1000)).toEqual(['train.ipynb']);
    expect(names(NOW - 1000, 'c/train.ipynb')).toEqual(['a/train.ipynb']);
    expect([past.pathOf('b'), past.pathOf('c')]).toEqual(['b/train.ipynb', null]);
  });
});
