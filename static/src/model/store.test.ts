import { beforeEach, describe, expect, it, vi } from 'vitest';

import { makeDetails } from '../testing/details';
import {
  GIB,
  makeGpu,
  makeHello,
  makeInventory,
  NO_HISTORY,
  NOW,
  makeProcess,
  makeSample,
} from '../testing/frames';
import type { Gpu, GpuSample, Inventory } from '../wire';
import { PastHolders } from './dashboard/past-holders';
import { gpusOf, seriesKey } from './gpu';
import { holderSeriesKey, holderId, holderRows } from './holders';
import { HOLDER_MEMORY, ALL_MIG_METRICS } from './metric';
import { Store } from './store';

const UTILIZATION_METRIC = 'utilization.gpu_percent';
const KEY_0 = seriesKey({ index: 0, uuid: 'GPU-0' }, UTILIZATION_METRIC);
const KEY_1 = seriesKey({ index: 1, uuid: 'GPU-1' }, UTILIZATION_METRIC);

/** Returns the stored values of a key, with `null` for a gap. */
function keptValues(key: string): (number | null)[] {
  return [...store.timeline.values(key)].map((value) => (Number.isNaN(value) ? null : value));
}

let store: Store;
beforeEach(() => {
  store = new Store(() => NOW);
});

describe('history in the store', () => {
  const history = {
    times_ms: [NOW - 3000, NOW - 2000, NOW - 1000],
    gpus: [{ uuid: 'GPU-0', metrics: { [UTILIZATION_METRIC]: [10, null, 30] } }],
  };

  it('first frame and newest sample form history', () => {
    store.apply(makeHello({ history }));
    expect([...store.timeline.times_ms]).toEqual([NOW - 3000, NOW - 2000, NOW - 1000, NOW]);
    expect(keptValues(KEY_0)).toEqual([10, null, 30, 96]);
    expect(keptValues(KEY_1)).toEqual([null, null, null, 96]);
  });

  it('merged history keeps later samples', () => {
    store.apply(makeHello());
    store.apply({ type: 'sample', ...makeSample(NOW + 10_000, [makeGpu(0)]) });
    store.apply({
      type: 'history',
      times_ms: [NOW + 4000, NOW + 5000],
      gpus: [{ uuid: 'GPU-0', metrics: { [UTILIZATION_METRIC]: [10, 20] } }],
    });
    expect(keptValues(KEY_0)).toEqual([96, null, 10, 20, null, 96]);
    expect(keptValues(KEY_1)).toEqual([96, null, null, null, null, null]);
  });

  it('history survives reconnect but not clock reset', () => {
    store.apply(makeHello({ history }));
    store.apply(makeHello({ sample: null, history: NO_HISTORY }));
    expect(keptValues(KEY_0)).toEqual([10, null, 30, 96]);
    store.apply(makeHello({ at_ms: NOW - 3_600_000, sample: null, history: NO_HISTORY }));
    expect(keptValues(KEY_0)).toEqual([]);
  });

  it('requested metrics are kept', () => {
    const clock = 'clocks.sm_mhz';
    const key = seriesKey({ index: 0, uuid: 'GPU-0' }, clock);
    expect(store.trackMetrics([clock, 'host.cpu.busy_percent', HOLDER_MEMORY])).toContain(clock);
    store.apply(makeHello({ history: NO_HISTORY }));
    store.apply({
      type: 'history',
      times_ms: [NOW - 1000, NOW],
      gpus: [{ uuid: 'GPU-0', metrics: { [clock]: [345, 1] } }],
      host: { 'host.cpu.busy_percent': [7, 8] },
    });
    expect(keptValues(key)).toEqual([345, 1980]);
    expect(keptValues('host.cpu.busy_percent')[0]).toBe(7);
  });

  it('requested field is kept if server lacks it', () => {
    const [energy, newer] = ['power.energy_joules_total', 'pcie.generation'];
    expect(store.trackMetrics([energy, newer])).toEqual(
      expect.arrayContaining([UTILIZATION_METRIC, energy, newer]),
    );
    store.apply(makeHello({ history: NO_HISTORY }));
    const warning = vi.spyOn(console, 'warn').mockReturnValue();
    store.apply({ type: 'error', message: `unknown metric '${newer}'` });
    store.apply({
      type: 'history',
      times_ms: [NOW - 1000],
      gpus: [{ uuid: 'GPU-0', metrics: { [energy]: [123] } }],
    });
    expect(warning).toHaveBeenCalledOnce();
    warning.mockRestore();
    const of = (id: string): (number | null)[] =>
      keptValues(seriesKey({ index: 0, uuid: 'GPU-0' }, id));
    expect([of(energy)[0], of(newer)]).toEqual([123, [null, expect.any(Number)]]);
  });
});

describe('samples in the store', () => {
  it('missed samples leave a gap', () => {
    store.apply(makeHello());
    store.apply({ type: 'sample', ...makeSample(NOW + 1000, [makeGpu(0), makeGpu(1)]) });
    store.apply({ type: 'sample', ...makeSample(NOW + 9000, [makeGpu(0), makeGpu(1)]) });
    expect(keptValues(KEY_0)).toEqual([96, 96, null, 96]);
  });

  it('long sample interval leaves no gap', () => {
    store.apply(makeHello({ sample: makeSample(NOW, [makeGpu(0)], 10_000) }));
    store.apply({ type: 'sample', ...makeSample(NOW + 10_000, [makeGpu(0)], 10_000) });
    expect(keptValues(KEY_0)).toEqual([96, 96]);
  });

  it('missing reading leaves gap in one line', () => {
    store.apply(makeHello());
    const blind = makeGpu(0, {
      utilization: { ...makeGpu(0).utilization, gpu_percent: { absent: 'not_supported' } },
    });
    store.apply({ type: 'sample', ...makeSample(NOW + 1000, [blind, makeGpu(1)]) });
    expect(keptValues(KEY_0)).toEqual([96, null]);
    expect(keptValues(KEY_1)).toEqual([96, 96]);
    expect(keptValues(seriesKey({ index: 0, uuid: 'GPU-0' }, 'memory.used_bytes'))).toEqual([
      78 * GIB,
      78 * GIB,
    ]);
  });

  it('old values of hung GPU are not drawn', () => {
    store.apply(makeHello());
    const hung = makeGpu(0, { health: { state: 'hung', since_ms: NOW } });
    store.apply({ type: 'sample', ...makeSample(NOW + 1000, [hung, makeGpu(1)]) });
    expect(keptValues(KEY_0)).toEqual([96, null]);
  });
});

describe('GPUs in the store', () => {
  it('lost GPU keeps its position', () => {
    store.apply(
      makeHello({
        inventory: makeInventory(3),
        sample: makeSample(NOW, [makeGpu(0), makeGpu(1), makeGpu(2)]),
      }),
    );
    const lost = makeGpu(1, { health: { state: 'lost', since_ms: NOW } });
    store.apply({ type: 'sample', ...makeSample(NOW + 1000, [makeGpu(0), lost, makeGpu(2)]) });
    const gpus = gpusOf(store.inventory, store.sample);
    expect(gpus.map(({ index }) => index)).toEqual([0, 1, 2]);
    expect(gpus.map(({ now }) => now?.health.state)).toEqual(['ok', 'lost', 'ok']);
  });

  it('readings are matched to GPUs by index', () => {
    const gpus = gpusOf(
      makeInventory(2),
      makeSample(NOW, [makeGpu(1, { performance_state: 8 }), makeGpu(0)]),
    );
    expect(gpus.map(({ now }) => now?.performance_state)).toEqual([0, 8]);
  });

  it('GPUs are listed before their first sample', () =>
    expect(gpusOf(makeInventory(1), null)).toMatchObject([{ index: 0, name: 'H200', now: null }]));
});

describe('frames in the store', () => {
  it('unknown frame changes nothing', () => {
    store.apply(makeHello());
    const before = store.sample;
    store.apply(JSON.parse('{"type": "from the future"}') as never);
    expect(store.sample).toBe(before);
  });

  it('error frame is logged', () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    store.apply({ type: 'error', message: 'unknown type' });
    expect(warn).toHaveBeenCalledOnce();
  });

  it('event frame adds an event and drops oldest', () => {
    for (let i = 0; i < 150; i += 1) {
      store.apply({ type: 'event', at_ms: NOW + i, gpu: null, what: 'gpu_back' });
    }
    expect(store.events).toHaveLength(100);
    expect(store.events.at(-1)?.at_ms).toBe(NOW + 149);
  });

  it('first frame of new connection replaces old data', () => {
    const event = { at_ms: NOW, gpu: null, what: 'mig_changed' } as const;
    store.apply(makeHello({ events: [event], details: [makeDetails(0), makeDetails(1)] }));
    store.apply({ type: 'event', ...event, at_ms: NOW + 1 });
    expect(store.events.map(({ at_ms }) => at_ms)).toEqual([NOW, NOW + 1]);
    store.apply({ type: 'details', ...makeDetails(1, { pcie_replays_total: 7 }) });
    const gpus = gpusOf(store.inventory, store.sample, store.details);
    expect(gpus.map((one) => one.details?.pcie_replays_total)).toEqual([0, 7]);
    store.apply(makeHello({ details: [makeDetails(0)] }));
    expect(store.events).toEqual([]);
    expect([...store.details.keys()]).toEqual([0]);
  });

  it('trace frames do not change the sample times', () => {
    store.apply(makeHello());
    const times = [...store.timeline.times_ms];
    const trace = { index: 0, uuid: 'GPU-0', metric: 'power_watts', start_us: NOW * 1000 } as const;
    store.apply({
      type: 'trace',
      ...trace,
      offsets_us: [0, 20_000],
      values: [600, 610],
      gap: false,
    });
    expect([...store.timeline.times_ms]).toEqual(times);
    expect([...(store.traces.get('GPU-0 power_watts')?.values('GPU-0 power_watts') ?? [])]).toEqual(
      [600, 610],
    );
  });
});

it('history restores holders and MIG devices', () => {
  const notebook = { kernel_id: 'k', kernel_pid: 8, path: 'eval.ipynb' };
  const metrics = [HOLDER_MEMORY, ALL_MIG_METRICS];
  expect(store.trackMetrics(metrics)).toEqual(
    expect.arrayContaining([HOLDER_MEMORY, 'mig.memory.used_bytes']),
  );
  const [stays, gone] = [makeProcess(7), makeProcess(8, { owner: { parents: [], notebook } })];
  store.apply(makeHello({ sample: makeSample(NOW, [makeGpu(0, { processes: [stays] })]) }));
  const holders = [
    { process: stays, memory_bytes: [null, GIB] },
    { process: gone, memory_bytes: [2 * GIB, null] },
  ];
  const mig_devices = [{ uuid: 'MIG-1', metrics: { 'mig.memory.used_bytes': [GIB, GIB] } }];
  const times_ms = [NOW - 2000, NOW - 1000];
  store.apply({
    type: 'history',
    times_ms,
    gpus: [{ uuid: 'GPU-0', metrics: {}, holders }],
    mig_devices,
  });
  const values = (series: string): number[] => [...store.timeline.values(series)];
  expect(values(holderSeriesKey(makeGpu(0), holderId(stays)))).toEqual([NaN, GIB, 61 * GIB]);
  expect(values(holderSeriesKey(makeGpu(0), 'kernel k'))).toEqual([2 * GIB, NaN, NaN]);
  expect(values('MIG-1 mig.memory.used_bytes')).toEqual([GIB, GIB, NaN]);

  const gpus = gpusOf(store.inventory, store.sample);
  const past = new PastHolders();
  past.record(holderRows(gpus, store.slots), NOW);
  past.addFormerHolders(store.formerHolders, gpus, store.slots);
  const named = (from_ms: number): unknown =>
    past
      .holdersSince(from_ms, NOW)
      .get(0)
      ?.map(({ name }) => name);
  expect(named(NOW - 3000)).toEqual(['python3', 'eval.ipynb']);
  expect(named(NOW - 1500)).toEqual(['python3']);
  const slots = past
    .holdersSince(0, NOW)
    .get(0)
    ?.map(({ slot }) => slot);
  expect(new Set(slots).size).toBe(2);
});

it('hung GPU keeps its readings after server restart', () => {
  const hung = (since_ms: number): GpuSample => makeGpu(1, { health: { state: 'hung', since_ms } });
  store.apply(
    makeHello({
      inventory: makeInventory(2),
      sample: makeSample(NOW - 2000, [makeGpu(0), makeGpu(1)]),
    }),
  );
  store.apply({ type: 'sample', ...makeSample(NOW - 1000, [makeGpu(0), hung(NOW - 1500)]) });
  const unread = { ...hung(NOW + 9000), uuid: null, power: makeGpu(1).power };
  const [first, second] = makeInventory(2).gpus as [Gpu, Gpu];
  const unknown = {
    ...makeInventory(2),
    gpus: [first, { ...second, uuid: null, name: { absent: { reason: 'unknown' } } }],
  };
  store.apply(
    makeHello({
      inventory: unknown as Inventory,
      sample: makeSample(NOW + 9000, [makeGpu(0), unread]),
    }),
  );
  const [, known] = gpusOf(store.inventory, store.sample);
  expect(known).toMatchObject({
    name: 'H200',
    uuid: 'GPU-1',
    now: { at_ms: NOW - 1000, health: { since_ms: NOW - 1500 } },
  });
  // A machine with another host name has other GPUs, so the GPUs of the previous machine are
  // dropped.
  store.apply(
    makeHello({
      inventory: { ...(unknown as Inventory), hostname: 'other' },
      sample: makeSample(NOW, [makeGpu(0), unread]),
    }),
  );
  expect(gpusOf(store.inventory, store.sample)[1]?.uuid).toBeNull();
});
