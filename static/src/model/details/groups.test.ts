import { describe, expect, it } from 'vitest';

import { makeDetails, makeNvLink } from '../../testing/details';
import {
  makeGpu,
  makeInventory,
  HOST_EVIDENCE,
  LIMIT_SUMMARY,
  makeLimits,
  makeProcess,
  NOW,
  makeSample,
  makeUnifiedGpu,
} from '../../testing/frames';
import type { GpuDetails, GpuSample, Inventory, Limits, Process, Reading } from '../../wire';
import { gpusOf, type GpuState } from '../gpu';
import { readingTime, valueOf } from '../reading';
import { detailGroups, type DetailRow, type RowGroup } from './groups';

interface GpuChanges {
  now?: Partial<GpuSample>;
  details?: Partial<GpuDetails> | null;
  machine?: Inventory;
}

function makeGpuState(given: GpuChanges = {}): GpuState {
  const slow = given.details === null ? [] : [[0, makeDetails(0, given.details)] as const];
  const found = gpusOf(
    given.machine ?? makeInventory(1),
    makeSample(NOW, [makeGpu(0, given.now)]),
    new Map(slow),
  )[0];
  if (found === undefined) {
    throw new Error('the inventory is empty');
  }
  return found;
}

function rowOf(gpu: GpuState, id: string): DetailRow | undefined {
  return detailGroups(gpu)
    .groups.flatMap(({ rows }) => rows)
    .find(({ detail }) => detail.id === id);
}

/** Returns the text of a row as shown on the screen. */
function readRowText(id: string, given: GpuChanges = {}): string | null {
  const gpu = makeGpuState(given);
  const row = rowOf(gpu, id);
  const value = valueOf(row?.reading);
  return value === null
    ? null
    : [value, row?.detail.rest?.(gpu) ?? ''].join(' ').trim().replaceAll('\u00a0', ' ');
}

function levelOfRow(id: string, given: GpuChanges): string | undefined {
  const gpu = makeGpuState(given);
  return rowOf(gpu, id)?.detail.level?.(gpu);
}

describe('GPU details', () => {
  it.each([
    ['clocks.sm_mhz', '1,980 MHz of 1,980 MHz'],
    ['power.limit_watts', '700 W of 200–700 W'],
    ['temperature.memory_celsius', '70 °C of 95 °C'],
    ['throttled', 'power limit 12 min'],
    ['ecc.volatile', 'no errors'],
    ['ecc.aggregate', '3 corrected · 0 uncorrected'],
    ['ecc.aggregate_by_location', 'device memory 3 + 0'],
    ['remapped_rows', '1'],
    ['remapped_rows.spare', 'enough in all banks'],
    ['bar1', '2.00 / 256 GiB'],
    ['pcie.generation', 'gen 5 ×16 of gen 5 ×16'],
    ['pcie.tx_bytes_per_second', '2.40 GB/s RX · 150 MB/s TX'],
    ['pcie_replays_total', '0'],
    ['nvlinks', '18 of 18 up (4.0, 25.0 GB/s)'],
    ['modes.persistence', 'on'],
    ['modes.compute', 'default'],
    ['modes.mig', 'off'],
    ['recovery_action', 'none'],
    ['board.vbios_version', '96.00.BA.00.01'],
    ['board.serial', '1650824000123'],
  ])('detail %s is shown as "%s"', (id, expected) => expect(readRowText(id)).toBe(expected));

  it('slow reading shows its time', () => {
    const row = rowOf(makeGpuState({ details: { at_ms: NOW - 7000 } }), 'bar1');
    expect(readingTime(row?.reading ?? '')).toBe(NOW - 7000);
  });

  it('unsupported detail is listed instead of shown', () => {
    const { missing } = detailGroups(makeGpuState());
    expect(missing).toContain('Fans');
    expect(missing).toContain('Retired pages');
    expect(readRowText('fans')).toBeNull();
  });

  it('missing detail shows its reason', () => {
    const hidden: Reading<never> = { absent: 'no_permission' };
    expect(
      rowOf(makeGpuState({ details: { pcie_replays_total: hidden } }), 'pcie_replays_total')
        ?.reading,
    ).toEqual(hidden);
  });

  it('partly missing detail shows only available values', () => {
    const pcie = { ...makeGpu(0).pcie, rx_bytes_per_second: { absent: 'warming_up' } as const };
    expect(readRowText('pcie.tx_bytes_per_second', { now: { pcie } })).toBe('150 MB/s TX');
    const none = { ...pcie, tx_bytes_per_second: { absent: 'no_permission' } as const };
    expect(
      rowOf(makeGpuState({ now: { pcie: none } }), 'pcie.tx_bytes_per_second')?.reading,
    ).toEqual({
      absent: 'warming_up',
    });
  });

  it('details of another board are not shown', () => {
    expect(rowOf(makeGpuState({ details: null }), 'bar1')).toBeUndefined();
    expect(rowOf(makeGpuState({ details: { uuid: 'GPU-before' } }), 'bar1')).toBeUndefined();
    expect(readRowText('clocks.sm_mhz', { details: null })).not.toBeNull();
  });

  it('all known fans or the fastest are shown', () => {
    const fans = [
      { speed_percent: 45, rpm: 2100 },
      { speed_percent: 47, rpm: { absent: 'not_supported' } as const },
    ];
    expect(readRowText('fans', { details: { fans } })).toBe('45 % (2,100 rpm) · 47 %');
    expect(readRowText('fans', { now: { fan_percent: 31 } })).toBe('31 %');
  });

  it('paths to other GPUs are grouped', () => {
    const topology: Inventory['topology'] = [
      { a: 0, b: 1, path: 'node', nvlinks: 18 },
      { a: 0, b: 2, path: 'system', nvlinks: 0 },
      { a: 0, b: 3, path: 'node', nvlinks: 18 },
      { a: 1, b: 2, path: 'node', nvlinks: 4 },
    ];
    const machine = { ...makeInventory(1), topology };
    expect(readRowText('topology', { machine })).toBe('1, 3: 18 NVLinks · 2: across CPUs');
  });
});

describe('details of what limits a GPU', () => {
  const findGroup = (
    limits: Reading<Limits>,
    processes: Reading<Process[]> = [],
  ): RowGroup | undefined =>
    detailGroups(makeGpuState({ now: { limits, processes } })).groups.find(
      ({ title }) => title === 'Limited by',
    );
  const readNotes = (...given: Parameters<typeof findGroup>): string[] =>
    (findGroup(...given)?.notes ?? []).map((note) => note.replaceAll('\u00a0', ' '));

  it('causes are sorted by share, with advice', () => {
    const limits = { value: makeLimits(), at_ms: NOW - 5000 };
    const group = findGroup(limits);
    const rows = group?.rows.map(({ label, reading }) => [label, valueOf(reading)]);
    expect(rows).toEqual([
      ['Tensor-bound', '62\u00a0%'],
      ['Latency-bound', '26\u00a0%'],
      ['Memory-bound', '8\u00a0%'],
      ['Idle', '4\u00a0%'],
    ]);
    expect(readingTime(group?.rows[0]?.reading ?? '')).toBe(NOW - 5000);
    expect(readNotes(limits)).toEqual([
      'Tensor cores are busy 58 % of the time. The GPU is well used. Narrower types such as FP8 are faster.',
    ]);
  });

  it('unclear causes have no evidence', () => {
    const limits = makeLimits({ confidence: 'low' });
    expect(findGroup(limits)?.rows).toHaveLength(4);
    expect(readNotes(limits)).toEqual([]);
  });

  it('each owner has its own causes and advice', () => {
    const shares = [
      { cause: 'shared', percent: 50 },
      { cause: 'tensor', percent: 38 },
    ] as const;
    const evidence = { ...HOST_EVIDENCE, owners: 2 };
    const owners = [
      { pids: [4711], limits: { ...LIMIT_SUMMARY, shares: [...shares], evidence } },
      { pids: [12, 13, 14, 15], limits: LIMIT_SUMMARY },
    ];
    const notebook = { kernel_id: 'k1', kernel_pid: 12, path: 'a/train.ipynb' };
    // The names of another user's process are hidden, and PID 14 has ended.
    const processes = [
      makeProcess(4711, { name: 'train.py' }),
      makeProcess(12, { owner: { parents: [], notebook } }),
      makeProcess(13, { name: { absent: 'hidden' } }),
    ];
    const limits = makeLimits({ confidence: 'low', owners });
    const [first, second] = readNotes(limits, processes);
    expect(first).toBe(
      'train.py (PID 4711): shared 50 %, tensor-bound 38 %. 2 owners use the SMs at the same time. Move one of the programs to another GPU, or run them one after the other.',
    );
    expect(second).toMatch(
      /^train\.ipynb \(PID 12\), PID 13, PID 14 and 1 more: host-bound 62 %, tensor-bound 30 %\. A process uses 100 % of a core while the GPU waits\. Prepare/,
    );
    expect(readNotes(limits, { absent: 'no_permission' })[0]).toMatch(/^PID 4711: shared 50 %/);
  });

  it('missing limits have a reason', () => {
    expect(findGroup({ absent: 'warming_up' })?.rows.map(({ reading }) => reading)).toEqual([
      { absent: 'warming_up' },
    ]);
    expect(findGroup({ absent: 'not_supported' })).toBeUndefined();
    const { limits, ...now } = makeGpu(0);
    const [gpu] = gpusOf(makeInventory(1), makeSample(NOW, [now]));
    expect(limits).toBeDefined();
    expect(gpu && detailGroups(gpu).missing).toContain('Limited by');
  });
});

it('unified memory has its own rows', () => {
  const now = makeUnifiedGpu(0, 41);
  expect(readRowText('memory.free_bytes', { now })).toBe('59.0 GiB available');
  expect(readRowText('memory.system_bytes', { now })).toBe('20.0 GiB');
  expect(readRowText('memory.free_bytes')).toBeNull();
});

describe('details of another vendor', () => {
  const topology: Inventory['topology'] = [{ a: 0, b: 1, path: 'node', nvlinks: 7 }];
  const machine = { ...makeInventory(1, 'amd'), topology };
  const absent = { absent: 'not_supported' } as const;

  it('details use vendor terms', () => {
    const labels = ['nvlinks', 'nvlink.tx_bytes_per_second', 'nvlinks.errors_total'].map(
      (id) =>
        rowOf(
          makeGpuState({
            machine,
            now: { nvlink: { rx_bytes_per_second: 1, tx_bytes_per_second: 1 } },
          }),
          id,
        )?.label,
    );
    expect(labels).toEqual(['XGMI', 'XGMI traffic', 'XGMI errors']);
    expect(readRowText('topology', { machine })).toBe('1: 7 XGMI links');
  });

  it('NVIDIA features are not listed for other vendors', () => {
    const given = { details: { c2c_enabled: absent, fabric: absent, nvlinks: [] } };
    const missing = (known?: Inventory): string[] =>
      detailGroups(makeGpuState(known === undefined ? given : { ...given, machine: known }))
        .missing;
    expect(missing()).toEqual(expect.arrayContaining(['NVLink', 'NVLink-C2C', 'Fabric']));
    expect(missing(machine)).toContain('XGMI');
    expect(missing(machine).join()).not.toMatch(/NVLink|Fabric/);
    expect(rowOf(makeGpuState({ machine }), 'modes.mig')).toBeUndefined();
  });
});

describe('problems in details', () => {
  it('memory problem is marked', () => {
    const ecc = { ...makeDetails(0).ecc, volatile: { corrected_total: 0, uncorrected_total: 1 } };
    expect(levelOfRow('ecc.volatile', { details: { ecc } })).toBe('critical');
    expect(levelOfRow('ecc.volatile', {})).toBe('none');
    const rows = { correctable: 0, uncorrectable: 1, pending: true, failed: false, spare: null };
    expect(levelOfRow('remapped_rows', { details: { remapped_rows: rows } })).toBe('warning');
    expect(
      levelOfRow('remapped_rows', { details: { remapped_rows: { ...rows, failed: true } } }),
    ).toBe('critical');
    expect(readRowText('remapped_rows', { details: { remapped_rows: rows } })).toBe(
      '1 · reset needed',
    );
  });

  it('link problem is marked, unused links are not', () => {
    const some = [makeNvLink(0), makeNvLink(1, { active: false })];
    expect(readRowText('nvlinks', { details: { nvlinks: some } })).toBe(
      '1 of 2 up (4.0, 25.0 GB/s)',
    );
    expect(levelOfRow('nvlinks', { details: { nvlinks: some } })).toBe('warning');
    expect(levelOfRow('nvlinks', { details: { nvlinks: some.slice(1) } })).toBe('none');
    expect(detailGroups(makeGpuState({ details: { nvlinks: [] } })).missing).toContain('NVLink');
  });

  it('recovery action of driver is explained', () => {
    expect(readRowText('recovery_action', { details: { recovery_action: 'gpu_reset' } })).toBe(
      'reset the GPU',
    );
    expect(levelOfRow('recovery_action', { details: { recovery_action: 'gpu_reset' } })).toBe(
      'critical',
    );
  });

  it('pending setting mentions the reset', () => {
    const modes = { ...makeDetails(0).modes, ecc: { current: true, pending: false } };
    expect(readRowText('modes.ecc', { details: { modes } })).toBe('on (off after a reset)');
  });
});
