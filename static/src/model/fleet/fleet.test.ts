import { describe, expect, it } from 'vitest';

import { generateFleet, withComputedSums } from '../../testing/fleet';
import { NOW } from '../../testing/frames';
import type { FleetOwner, FleetUsage, GpuState } from '../../wire';
import { columnsOf, isCritical, rowName, type Columns } from './columns';
import { parseFilter } from './filter';
import { findFreeNodes, nearestNode, describeNearestNode } from './free';
import { nodeOrder, rowOrder, WORST_FIRST } from './order';
import {
  ownerRows,
  filterOwners,
  sortOwners,
  makeSummaryRows,
  unrecordedTime,
  type Grouping,
} from './owners';
import { formatFleetState, parseFleetState, DEFAULT_FLEET_STATE } from './state';
import { concernsOf, countCriticalGpus, totalsOf, totalText } from './totals';

const GIB = 1024 ** 3;
const fleet = generateFleet({ nodes: 1000, gpus: 8, at_ms: NOW });
const columns = columnsOf(fleet);

function rowsOf(filter: string): number[] {
  const shown = parseFilter(filter).match(columns);
  return [...(shown ?? new Uint8Array(columns.count).fill(1))].flatMap((one, row) =>
    one === 1 ? [row] : [],
  );
}

describe('fleet columns', () => {
  it('unlisted GPUs of nodes have rows', () => {
    expect(columns.count).toBe(8000);
    const without = columnsOf(
      withComputedSums({
        ...fleet,
        nodes: {
          ...fleet.nodes,
          name: [...fleet.nodes.name, 'gone'],
          health: [...fleet.nodes.health, 'unreachable'],
          gpus: [...fleet.nodes.gpus, 4],
        },
      }),
    );
    expect(without.count).toBe(8004);
    expect([...without.rowsOf(1000)].map((row) => rowName(without, row))).toEqual([
      'gone / 0',
      'gone / 1',
      'gone / 2',
      'gone / 3',
    ]);
    expect(without.state[8000]).toBe('unknown');
    expect(without.readings.utilization[8000]).toBeNaN();
  });

  it('node that never reported has no GPUs', () => {
    const never = columnsOf(
      withComputedSums({
        ...fleet,
        nodes: {
          ...fleet.nodes,
          name: [...fleet.nodes.name, 'never'],
          health: [...fleet.nodes.health, 'unreachable'],
          gpus: [...fleet.nodes.gpus, 0],
        },
      }),
    );
    expect([never.count, rowName(never, 8000)]).toEqual([8001, 'never']);
    const all = new Uint8Array(never.count).fill(1);
    const { gpus, states } = totalsOf(never, all);
    expect([gpus[0], states.unknown]).toEqual([
      8000,
      totalsOf(columns, new Uint8Array(columns.count).fill(1)).states.unknown,
    ]);
    expect(never.nodes.gpus[1000]).toBe(0);
  });

  it('names are cleaned and truncated', () => {
    const hostile = columnsOf(
      generateFleet({ nodes: 1, gpus: 1, at_ms: NOW, nameOf: () => `a\u202eb${'x'.repeat(500)}` }),
    );
    expect(hostile.nodeNames[0]).toMatch(/^a\ufffdbx+…$/);
    expect(hostile.nodeNames[0]?.length).toBeLessThanOrEqual(120);
  });
});

describe('fleet order', () => {
  it('worst GPUs are first', () => {
    const order = rowOrder(columns, WORST_FIRST);
    const ranks = [...order].map((row) => columns.rank[row] ?? NaN);
    expect(ranks).toEqual([...ranks].sort((a, b) => a - b));
    expect(new Set(ranks)).toEqual(new Set([0, 1, 2, 3, 4, 5, 6]));
    expect(columns.state[order[0] ?? 0]).toBe('lost');
    const rest = [...order]
      .filter((row) => columns.rank[row] === 6)
      .map((row) => columns.readings.utilization[row] ?? 0);
    expect(rest).toEqual([...rest].sort((a, b) => b - a));
  });

  it('numbers sort descending with unknown values last', () => {
    for (const reversed of [false, true]) {
      const order = rowOrder(columns, { key: 'temperature', reversed });
      const values = [...order].map((row) => columns.readings.temperature[row] ?? NaN);
      const known = values.filter((value) => !Number.isNaN(value));
      expect(known).toEqual([...known].sort((a, b) => (reversed ? a - b : b - a)));
      expect(known.length).toBeLessThan(values.length);
      expect(values.slice(known.length).every(Number.isNaN)).toBe(true);
    }
  });

  it('sorting by name keeps order from the server', () => {
    const few = columnsOf(generateFleet({ nodes: 12, gpus: 2, at_ms: NOW }));
    for (const reversed of [false, true]) {
      const nodes = few.nodeNames.map((_, node) => node);
      expect([...nodeOrder(few, { key: 'name', reversed })]).toEqual(
        reversed ? nodes.toReversed() : nodes,
      );
      const rows = [...rowOrder(few, { key: 'name', reversed })];
      expect(rows.slice(0, 2).map((row) => rowName(few, row))).toEqual(
        reversed ? ['node-0012 / 0', 'node-0012 / 1'] : ['node-0001 / 0', 'node-0001 / 1'],
      );
    }
  });

  it('nodes are ordered by their worst GPU', () => {
    const [first = 0] = nodeOrder(columns, WORST_FIRST);
    expect([...columns.rowsOf(first)].some((row) => columns.state[row] === 'lost')).toBe(true);
  });
});

describe('fleet filter', () => {
  it('filter matches names of nodes, GPUs and owners', () => {
    expect(rowsOf('node-0412').map((row) => rowName(columns, row))).toEqual(
      Array.from({ length: 8 }, (_, index) => `node-0412 / ${index}`),
    );
    expect(rowsOf('h200').length).toBe(4000);
    expect(rowsOf('H200 node-0001').length).toBe(8);
    const owners = (filter: string): Set<string | null> =>
      new Set(
        rowsOf(filter).flatMap((row) =>
          columns.ownersOf(row).map((owner) => columns.owner(owner)?.user ?? null),
        ),
      );
    expect(owners('user:ana')).toEqual(new Set(['ana']));
    expect(rowsOf('88001').length).toBeGreaterThan(0);
    expect(rowsOf('88001')).toEqual(rowsOf('job:88001'));
    expect(rowsOf('namespace:serving').length).toBeGreaterThan(0);
    expect(rowsOf('nobody-is-called-so')).toEqual([]);
  });

  it('filter supports states, conditions and exclusions', () => {
    const is = (...states: GpuState[]): number[] =>
      rowsOf('').filter((row) => states.includes(columns.state[row] ?? 'unknown'));
    expect(rowsOf('busy')).toEqual(is('busy'));
    expect(rowsOf('free')).toEqual(is('free'));
    expect(rowsOf('idle')).toEqual(is('idle'));
    expect(rowsOf('held')).toEqual(is('busy', 'idle'));
    expect(rowsOf('lost')).toEqual(is('lost', 'unknown'));
    expect(rowsOf('-lost').length + rowsOf('lost').length).toBe(8000);
    expect(rowsOf('xid_79').length).toBeGreaterThan(0);
    expect(
      rowsOf('condition:row').every((row) =>
        columns.conditionsOf(row).some(({ kind }) => kind === 'row_remap'),
      ),
    ).toBe(true);
  });

  it('filter compares readings with units', () => {
    const memory = (row: number): number => (columns.readings.memoryUsed[row] ?? NaN) / GIB;
    const above = rowsOf('').filter((row) => memory(row) > 80);
    expect(above.length).toBeGreaterThan(100);
    expect(rowsOf('memory>80GiB')).toEqual(above);
    expect(rowsOf('mem>80')).toEqual(above);
    expect(rowsOf('memory>81920mib')).toEqual(above);
    expect(rowsOf('memory>85.899345920GB')).toEqual(above);
    expect(
      rowsOf('memory>=50%').every(
        (row) => memory(row) >= (columns.readings.memoryTotal[row] ?? 0) / GIB / 2,
      ),
    ).toBe(true);
    expect(rowsOf('power<100w').every((row) => (columns.readings.power[row] ?? NaN) < 100)).toBe(
      true,
    );
    expect(rowsOf('idle>1h').every((row) => (columns.idle_s[row] ?? NaN) > 3600)).toBe(true);
    expect(rowsOf('temperature>140f')).toEqual(rowsOf('temperature>60c'));
  });

  it('JavaScript property names are ordinary filter words', () => {
    const [one] = fleet.conditions;
    const strange = columnsOf({
      ...fleet,
      conditions: one === undefined ? [] : [{ ...one, kind: '__proto__' }],
    });
    for (const typed of [
      'constructor',
      'constructor:x',
      '__proto__',
      'memory>5constructor',
      'toString',
    ]) {
      expect(parseFilter(typed).match(strange)?.includes(1) ?? false, typed).toBe(
        typed === '__proto__',
      );
    }
  });

  it('invalid word is reported and ignored', () => {
    for (const typed of ['memory>80xb', 'speed>3', 'power>', 'users:ana']) {
      const { mistakes, match } = parseFilter(`${typed} h200`);
      expect(mistakes).toHaveLength(1);
      expect([...(match(columns) ?? [])]).toEqual([...(parseFilter('h200').match(columns) ?? [])]);
    }
    expect(parseFilter('user: ').match(columns)).toBeNull();
  });
});

describe('fleet sums', () => {
  it('each GPU is counted once', () => {
    const totals = totalsOf(columns, null);
    expect(totals.gpus).toEqual([8000]);
    const states = Object.values(totals.states).map((many) => many[0] ?? 0);
    expect(states.reduce((sum, many) => sum + many, 0)).toBe(8000);
    expect(totalsOf(columns, parseFilter('node-0412').match(columns)).gpus).toEqual([8]);
    const byNode = columnsOf(generateFleet({ nodes: 100, gpus: 8, at_ms: NOW, byNode: true }));
    expect(byNode.count).toBe(100);
    expect(totalsOf(byNode, null).gpus).toEqual([800]);
    expect(totalsOf(byNode, new Uint8Array(100).fill(1)).gpus).toEqual([800]);
  });

  it('number of critical GPUs matches the filter', () => {
    expect(countCriticalGpus(columns)).toBe(rowsOf('critical').length);
    expect(rowsOf('critical').length).toBeGreaterThan(rowsOf('lost').length);
  });

  it('sums have units and limits', () => {
    const totals = totalsOf(columns, null);
    const text = (metric: 'memory' | 'temperature', isShort: boolean): string =>
      totalText(totals, metric, { isShort }).replaceAll('\u00a0', ' ');
    expect(text('memory', false)).toMatch(/^≥ \d+ \/ \d+ TiB$/);
    expect(text('memory', true)).toMatch(/^≥ \d+ TiB$/);
    expect(text('temperature', false)).toMatch(/^up to \d+ °C$/);
    expect(text('temperature', true)).toMatch(/^\d+ °C$/);
  });

  it('worst condition is first', () => {
    const concerns = concernsOf(columns);
    expect(concerns[0]?.severity).toBe(3);
    expect(concerns.map(({ severity }) => severity)).toEqual(
      concerns.map(({ severity }) => severity).sort((a, b) => b - a),
    );
    expect(concerns.map(({ kind }) => kind)).not.toContain('held_idle');
  });
});

it('node with tightest fit is listed first', () => {
  const found = findFreeNodes(columns, { gpus: 4, memory_bytes: 80 * GIB, model: null }, null);
  expect(found.length).toBeGreaterThan(5);
  for (const { rows, node } of found) {
    expect(rows.length).toBeGreaterThanOrEqual(4);
    expect(rows.every((row) => columns.state[row] === 'free' && columns.node[row] === node)).toBe(
      true,
    );
    expect(rows.every((row) => (columns.readings.memoryTotal[row] ?? 0) >= 77 * GIB)).toBe(true);
  }
  const isFailing = ({ node }: (typeof found)[number]): boolean =>
    columns.rowsOf(node).some((row) => isCritical(columns, row));
  const sizes = found.filter((one) => !isFailing(one)).map(({ rows }) => rows.length);
  expect(sizes).toEqual([...sizes].sort((a, b) => a - b));
  expect(found.slice(sizes.length).every(isFailing)).toBe(true);
  expect(sizes.length).toBeLessThan(found.length);
  expect(findFreeNodes(columns, { gpus: 9, memory_bytes: 0, model: null }, null)).toEqual([]);
});

describe('nearest node', () => {
  const job = (id: string, user: string | null = 'ana'): FleetOwner => ({
    user,
    kind: 'slurm_job',
    id,
    namespace: null,
  });
  /**
   * Returns a node with eight GPUs. The first four GPUs are free, and the others have the state
   * `held`. For each GPU that is not free, `holders` contains the index of its owner.
   */
  const nodeWith = (owners: FleetOwner[], holders: number[], held: GpuState = 'idle'): Columns => {
    const one = generateFleet({ nodes: 1, gpus: 8, at_ms: NOW, nameOf: () => 'node0004' });
    const state = one.gpus.state.map((_, row): GpuState => (row < 4 ? 'free' : held));
    const holds = holders.map((owner, i) => ({ gpu: 4 + i, owner }));
    return columnsOf({ ...one, gpus: { ...one.gpus, state }, owners, holds });
  };
  const answer = (all: Columns, gpus: number, model: string | null = null): string | null => {
    const nearest = nearestNode(all, { gpus, memory_bytes: 0, model }, null);
    return nearest && describeNearestNode(all, nearest);
  };

  it('advice names idle job that blocks a node', () => {
    expect(answer(nodeWith([job('4711')], [0, 0, 0, 0]), 8)).toBe(
      '4 of 8 free on node0004; 8 if the idle Slurm job 4711 (ana) ends',
    );
  });

  it('as few idle jobs as needed are named', () => {
    const jobs = nodeWith([job('1'), job('2', null)], [0, 1, 1, 1]);
    expect(answer(jobs, 6)).toBe('4 of 8 free on node0004; 7 if the idle Slurm job 2 ends');
    expect(answer(jobs, 8)).toBe(
      '4 of 8 free on node0004; 8 if the idle Slurm job 2, Slurm job 1 (ana) end',
    );
  });

  it('advice ignores jobs that also have busy GPUs', () => {
    const busy = nodeWith([job('1')], [0, 0, 0, 0]);
    const state = busy.fleet.gpus.state.map((one, row) => (row === 7 ? 'busy' : one));
    const all = columnsOf({ ...busy.fleet, gpus: { ...busy.fleet.gpus, state } });
    expect(answer(all, 8)).toBe('4 of 8 free on node0004');
    expect(answer(nodeWith([job('1')], [], 'idle'), 8)).toBe('4 of 8 free on node0004');
  });

  it('no node is nearest for a missing model', () => {
    expect(answer(nodeWith([job('1')], [0]), 8, 'NVIDIA B200')).toBeNull();
    const found = findFreeNodes(
      columns,
      { gpus: 1, memory_bytes: 0, model: 'NVIDIA A100-SXM4-40GB' },
      null,
    );
    expect(new Set(found.map(({ model }) => model))).toEqual(new Set(['NVIDIA A100-SXM4-40GB']));
  });
});

function usageWith(changes: Partial<FleetUsage>): FleetUsage {
  return {
    from_ms: 0,
    to_ms: 1,
    state: 'current',
    problems: [],
    owners: [],
    owners_total: 0,
    unlisted: { name: null, owners: 0, gpu_s: null, active_gpu_s: null, energy_joules: null },
    users: [],
    namespaces: [],
    unheld_gpu_s: null,
    unheld_energy_joules: null,
    energy_joules: null,
    ...changes,
  };
}

const group = (name: string | null, gpu_s: number): FleetUsage['unlisted'] => ({
  name,
  owners: 1,
  gpu_s,
  active_gpu_s: gpu_s / 2,
  energy_joules: gpu_s * 100,
});

it('truncated job list keeps user and namespace sums', () => {
  const nobody = columnsOf({ ...fleet, owners: [], holds: [] });
  const job = {
    owner: { user: 'ana', kind: 'pod' as const, id: '1', namespace: 'ml' },
    ...group('', 100),
    nodes: 1,
  };
  const usage = usageWith({
    owners: [job],
    owners_total: 901,
    unlisted: { ...group(null, 9000), owners: 900 },
    users: [group('bob', 8000), group('ana', 1100)],
    namespaces: [group('ml', 9100)],
  });
  const rows = (grouping: Grouping): [string, number][] =>
    ownerRows(usage, nobody, grouping, '').map(({ name, gpu_s }) => [name, gpu_s]);
  expect(rows('users')).toEqual([
    ['bob', 8000],
    ['ana', 1100],
  ]);
  expect(rows('namespaces')).toEqual([['ml', 9100]]);
  expect(rows('jobs')).toEqual([['pod 1', 100]]);
  const jobs = ownerRows(usage, nobody, 'jobs', '');
  const sums = makeSummaryRows(usage, 'jobs', jobs, '').map(({ name, gpu_s, energy_joules }) => [
    name,
    gpu_s,
    energy_joules,
  ]);
  expect(sums).toEqual([
    ['900 more', 9000, 900_000],
    ['Total', 9100, 910_000],
  ]);
  const users = ownerRows(usage, nobody, 'users', '');
  expect(
    makeSummaryRows(usage, 'users', users, '').map(({ name, gpu_s }) => [name, gpu_s]),
  ).toEqual([['Total', 9100]]);
});

it('unrecorded time is total minus recorded GPU time', () => {
  const users = [group('ana', 7200), group(null, 800)];
  const usage = usageWith({ users, unheld_gpu_s: 1000, to_ms: 3_600_000 });
  expect(unrecordedTime(usage, 4)).toBe(4 * 3600 - 9000);
  expect(unrecordedTime(usage, 2)).toBe(0);
  expect(unrecordedTime({ ...usage, unheld_gpu_s: null }, 4)).toBeNaN();
});

it('amounts of partial usage are lower bounds', () => {
  const usage = usageWith({ users: [group('ana', 7200)], state: 'partial' });
  const [ana] = ownerRows(usage, columns, 'users', '');
  expect(ana?.isLowerBound).toBe(true);
  expect(makeSummaryRows(usage, 'users', ana === undefined ? [] : [ana], '')[0]?.isLowerBound).toBe(
    true,
  );
  const named = usageWith({ namespaces: [group('ml', 10), group(null, 5)] });
  expect(ownerRows(named, columns, 'namespaces', '')[0]?.isLowerBound).toBe(true);
  expect(
    ownerRows(usageWith({ users: [group('ana', 7200)] }), columns, 'users', '')[0]?.isLowerBound,
  ).toBe(false);
  // The server left some owners out of the list. The filter may also match these owners, so the sum
  // is a lower bound.
  const cut = usageWith({ owners_total: 9, unlisted: { ...group(null, 1), owners: 9 } });
  expect(
    makeSummaryRows(cut, 'jobs', ana === undefined ? [] : [ana], 'user:ana').map(
      ({ isLowerBound }) => isLowerBound,
    ),
  ).toEqual([true]);
});

it('other owners of matching GPU are not listed', () => {
  const owner = (user: string, id: string): FleetOwner => ({
    user,
    kind: 'slurm_job',
    id,
    namespace: null,
  });
  const busy = columns.state.indexOf('busy');
  const owners = [owner('ana', '1'), owner('bob', '2')];
  const shared = columnsOf({
    ...fleet,
    owners,
    holds: [0, 1].map((place) => ({ gpu: busy, owner: place })),
  });
  const usage = usageWith({
    owners: owners.map((one) => ({ owner: one, ...group('', Number(one.id) * 100), nodes: 1 })),
    owners_total: 2,
    users: [group('bob', 200), group('ana', 100)],
  });
  const found = (grouping: Grouping, filter: string): [string[], number | undefined] => {
    const rows = filterOwners(ownerRows(usage, shared, grouping, filter), filter);
    return [
      rows.map(({ name }) => name),
      makeSummaryRows(usage, grouping, rows, filter).at(-1)?.gpu_s,
    ];
  };
  for (const filter of ['user:ana', 'ana', '-user:bob', 'user:ana busy', 'user:ana -free']) {
    expect(found('users', filter), filter).toEqual([['ana'], 100]);
    expect(found('jobs', filter), filter).toEqual([['Slurm job 1'], 100]);
  }
  // The total of a user is the sum of the user's jobs.
  expect(found('users', 'job:2')).toEqual([['bob'], 200]);
  expect(found('users', 'busy')).toEqual([['bob', 'ana'], 300]);
});

it('filtered total excludes unknown users', () => {
  const nobody = columnsOf({ ...fleet, owners: [], holds: [] });
  const usage = usageWith({ users: [group('ana', 100), group(null, 50)] });
  const rows = ownerRows(usage, nobody, 'users', '');
  const sums = (filter: string): [string, number][] =>
    makeSummaryRows(usage, 'users', filterOwners(rows, filter), filter).map(({ name, gpu_s }) => [
      name,
      gpu_s,
    ]);
  for (const filter of ['', ' ', 'user:', '-user:', 'memory>80xb']) {
    expect(sums(filter), filter).toEqual([
      ['Unknown user', 50],
      ['Total', 150],
    ]);
  }
  expect(sums('user:ana')).toEqual([['Total', 100]]);
  expect(sums('user:bob')).toEqual([]);
  const unknown = usageWith({ users: [group(null, 50)], namespaces: [group(null, 20)] });
  const names = (grouping: Grouping): string[] =>
    makeSummaryRows(unknown, grouping, [], '').map(({ name }) => name);
  expect(names('users')).toEqual(['Unknown user', 'Total']);
  expect(names('namespaces')).toEqual(['Unknown namespace', 'Total']);
});

it('user filter matches only the exact name', () => {
  const usage = usageWith({ users: ['ana', 'anna', 'diana'].map((name) => group(name, 60)) });
  const rows = ownerRows(usage, columnsOf({ ...fleet, owners: [], holds: [] }), 'users', '');
  const found = (filter: string): string[] => filterOwners(rows, filter).map(({ name }) => name);
  expect(found('user:ana')).toEqual(['ana']);
  expect(found('ana')).toEqual(['ana', 'diana']);
  expect(found('-user:ana')).toEqual(['anna', 'diana']);
  expect(found('user:ana busy')).toEqual([]);
});

it('user row sums owners, counting shared GPU once', () => {
  const owner = (id: string): (typeof fleet.owners)[number] => ({
    user: 'ana',
    kind: 'slurm_job',
    id,
    namespace: null,
  });
  const held = columnsOf({
    ...fleet,
    owners: [owner('1'), owner('2')],
    holds: [0, 1].map((place) => ({ gpu: 5, owner: place })),
  });
  const usage = {
    owner: owner('1'),
    gpu_s: 3600,
    active_gpu_s: 1800,
    energy_joules: null,
    nodes: 1,
  };
  const answer = usageWith({
    owners: [usage, { ...usage, owner: owner('3') }],
    owners_total: 2,
    users: [{ name: 'ana', owners: 2, gpu_s: 7200, active_gpu_s: 3600, energy_joules: null }],
  });
  const [ana, ...rest] = ownerRows(answer, held, 'users', '');
  expect(rest).toEqual([]);
  expect(ana).toMatchObject({ name: 'ana', gpu_s: 7200, active_s: 3600, gpus: 1, nodes: 1 });
  expect(ana?.energy_joules).toBeNaN();
  expect(ownerRows(answer, held, 'jobs', '').map(({ name }) => name)).toEqual([
    'Slurm job 1',
    'Slurm job 3',
    'Slurm job 2',
  ]);
  const rows = ownerRows(answer, held, 'jobs', '');
  expect(sortOwners(rows, 'gpu_hours', false).at(-1)?.name).toBe('Slurm job 2');
  expect(sortOwners(rows, 'gpu_hours', true).at(-1)?.name).toBe('Slurm job 2');
  // A filter word for a node also finds the owners that currently use GPUs of the node.
  const former = ownerRows(answer, held, 'jobs', 'job:3');
  expect(filterOwners(former, 'job:3').map(({ name }) => name)).toEqual(['Slurm job 3']);
  const only = ownerRows(answer, held, 'jobs', 'node-0001');
  expect(filterOwners(only, 'node-0001').map(({ name }) => name)).toEqual([
    'Slurm job 1',
    'Slurm job 2',
  ]);
});

describe('fleet URL', () => {
  it('URL omits defaults and restores the state', () => {
    expect(formatFleetState(DEFAULT_FLEET_STATE)).toBe('');
    expect(parseFleetState('')).toEqual(DEFAULT_FLEET_STATE);
    const chosen = {
      ...DEFAULT_FLEET_STATE,
      view: 'users' as const,
      metric: 'memory' as const,
      sort: { key: 'power' as const, reversed: true },
      filter: 'memory>80GiB user:ana&b=%2',
      range: '7d' as const,
      selected: { node: 'a b/ü#?', gpu: 3 },
      owners: { key: 'energy' as const, reversed: true },
      wanted: { gpus: 2, memory_bytes: 80 * GIB, model: 'NVIDIA H200' },
    };
    expect(parseFleetState(formatFleetState(chosen))).toEqual(chosen);
  });

  it('invalid URL shows the defaults', () => {
    expect(
      parseFleetState('view=x&metric=constructor&sort=-__proto__&range=9y&by=1&gpus=-1&memory=1e9'),
    ).toEqual(DEFAULT_FLEET_STATE);
    expect(parseFleetState(`filter=${'a'.repeat(5000)}`).filter).toHaveLength(400);
  });
});

it('filtering and sorting 8000 GPUs takes milliseconds', () => {
  const begun = performance.now();
  for (const filter of ['ana', 'memory>80GiB busy', 'h200 -free']) {
    parseFilter(filter).match(columns);
    rowOrder(columns, WORST_FIRST);
  }
  // The limit is generous, because a busy machine may take several times as long.
  expect((performance.now() - begun) / 3).toBeLessThan(400);
});
