/**
 * A generated fleet that is the same on every machine: thousands of GPUs with owners, faults and
 * history.
 */

import { NO_SUMS } from '../model/fleet/columns';
import type {
  Fleet,
  FleetCondition,
  FleetEvent,
  FleetEvents,
  FleetHistory,
  FleetHold,
  FleetOwner,
  FleetSums,
  FleetUsage,
  GpuHealth,
  GpuState,
  NodeHealth,
} from '../wire';

const GIB = 1024 ** 3;
const MODELS = [
  { name: 'NVIDIA H200', memory: 141 * GIB, watts: 700 },
  { name: 'NVIDIA H100 80GB HBM3', memory: 80 * GIB, watts: 700 },
  { name: 'NVIDIA A100-SXM4-40GB', memory: 40 * GIB, watts: 400 },
] as const;
const USERS = 'ana bob chen dora emil fatima george hana ivan julia kofi lena'.split(' ');
const NAMESPACES = ['research', 'serving', 'vision'];

export interface GeneratedFleet {
  nodes: number;
  gpus: number;
  at_ms: number;
  byNode?: boolean;
  /** Returns the name of a node. By default, nodes are numbered. */
  nameOf?: (node: number) => string;
}

/**
 * Returns a generator of pseudorandom numbers from 0 to 1. The same seed always gives the same
 * numbers.
 */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Returns a fleet. On each node, either one job uses all GPUs, or each GPU has its own owner. */
export function generateFleet({
  nodes,
  gpus,
  at_ms,
  byNode = false,
  nameOf,
}: GeneratedFleet): Fleet {
  const random = createRandom(nodes * 31 + gpus);
  const all = new FleetBuilder();
  const names = Array.from(
    { length: nodes },
    (_, node) => nameOf?.(node) ?? `node-${String(node + 1).padStart(4, '0')}`,
  );
  const health: NodeHealth[] = [];
  const reasons: Record<number, string> = {};
  const unopenable: Record<number, string> = {};
  for (let node = 0; node < nodes; node += 1) {
    const isGone = random() < 0.004;
    health.push(isGone ? 'unreachable' : 'up');
    if (isGone) {
      reasons[node] =
        'the node has not answered for 6 min: connection refused; check that it is up';
      unopenable[node] = 'the node does not answer';
    }
    const model = node % 10 < 5 ? 0 : node % 10 < 8 ? 1 : 2;
    const kind = random();
    const owner = kind < 0.55 ? all.addSlurmJob(Math.floor(node / 4)) : null;
    for (let index = 0; index < (byNode ? 1 : gpus); index += 1) {
      const load = owner === null ? (random() < 0.5 ? random() : 0) : 0.75 + 0.25 * random();
      const fault = random();
      const gpuHealth: GpuHealth = isGone ? 'unknown' : fault < 0.0012 ? 'not_responding' : 'ok';
      const isFree = owner === null && (kind > 0.86 || random() < 0.15);
      all.addGpu({
        node,
        index,
        model,
        gpuHealth,
        isFree,
        load,
        owner,
        random,
        many: byNode ? gpus : 1,
      });
      if (gpuHealth === 'ok' && fault > 0.993) {
        all.addCondition(
          fault > 0.9985 ? 'xid_79' : fault > 0.996 ? 'ecc_uncorrected' : 'row_remap',
        );
      }
    }
  }
  return withComputedSums({
    at_ms,
    source: { kind: 'prometheus', name: 'http://prometheus.example:9090' },
    state: 'current',
    problems: [],
    refresh_s: 15,
    resolution: byNode ? 'node' : 'gpu',
    nodes: { name: names, health, reasons, gpus: names.map(() => gpus), unopenable },
    gpus: all.buildGpus(),
    owners: all.owners,
    holds: all.holds,
    conditions: all.conditions,
    sums: NO_SUMS,
    totals: NO_SUMS,
    missing: {},
  });
}

/** Returns the fleet with the ranks and sums that a server sends, after a test has changed it. */
export function withComputedSums(fleet: Fleet): Fleet {
  const worst = new Map<number, number>();
  for (const { gpu, severity } of fleet.conditions) {
    worst.set(gpu, Math.max(severity, worst.get(gpu) ?? 0));
  }
  const rank = fleet.gpus.state.map((state, row) => {
    const severity = worst.get(row) ?? 0;
    const usual = state === 'idle' ? 4 : severity === 1 ? 5 : 6;
    return state === 'lost' ? 0 : state === 'unknown' ? 1 : severity > 1 ? 5 - severity : usual;
  });
  const listed = new Set(fleet.gpus.node);
  const unlisted = fleet.nodes.gpus.flatMap((gpus, node) =>
    listed.has(node) ? [] : Array.from({ length: Math.max(1, gpus) }, () => node),
  );
  const gpus = { ...fleet.gpus, rank, unlisted };
  const all = { ...fleet, gpus };
  const places = fleet.nodes.name.map((): number[] => []);
  gpus.node.forEach((node, row) => places[node]?.push(row));
  const sums = places.map((rows, node) => sumOf(all, rows, [node]));
  return {
    ...all,
    sums: joinSums(sums),
    totals: joinSums([sumOf(all, [...gpus.node.keys()], [...places.keys()])]),
  };
}

type Sum = Record<string, number | null>;
const STATES: readonly GpuState[] = ['busy', 'idle', 'free', 'lost', 'unknown'];

/**
 * Returns the sums, by the keys of `FleetSums`, over two sets of GPUs: those in `rows`, and those
 * of the nodes in `of` that are not listed.
 */
function sumOf({ gpus, nodes, resolution }: Fleet, rows: number[], of: number[]): Sum {
  const hidden = of.filter((node) => gpus.unlisted.includes(node));
  const many = (row: number): number =>
    resolution === 'node' ? (nodes.gpus[gpus.node[row] ?? 0] ?? 0) : 1;
  const count = (all: number[]): number => all.reduce((sum, row) => sum + many(row), 0);
  const unknown = hidden.reduce((sum, node) => sum + (nodes.gpus[node] ?? 0), 0);
  const idle = rows.flatMap((row) => gpus.idle_holding_s[row] ?? []);
  const sum: Sum = {
    gpus: count(rows) + unknown,
    rank: Math.min(...rows.map((row) => gpus.rank[row] ?? 6), ...hidden.map(() => 1)),
    idle_holding_s: idle.length === 0 ? null : Math.max(...idle),
  };
  for (const state of STATES) {
    const inState = rows.filter((row) => gpus.state[row] === state);
    sum[`states ${state}`] = count(inState) + (state === 'unknown' ? unknown : 0);
  }
  for (const [id, values] of Object.entries(gpus.readings)) {
    const known = rows.flatMap((row) => {
      const value = values[row] ?? null;
      return value === null ? [] : [{ row, value }];
    });
    const reporting = count(known.map(({ row }) => row));
    const total = known.reduce((all, { row, value }) => {
      const weight = id.startsWith('utilization') ? many(row) / reporting : 1;
      return id.startsWith('temperature') ? Math.max(all, value) : all + value * weight;
    }, 0);
    sum[`reporting ${id}`] = reporting;
    sum[`readings ${id}`] = known.length === 0 ? null : total;
  }
  return sum;
}

function joinSums(all: readonly Sum[]): FleetSums {
  const sums: Record<string, unknown> = { ...NO_SUMS, states: {}, readings: {}, reporting: {} };
  for (const path of Object.keys(all[0] ?? {})) {
    const [name = '', key] = path.split(' ');
    const column = all.map((sum) => sum[path] ?? null);
    if (key === undefined) {
      sums[name] = column;
    } else {
      Object.assign(sums[name] as object, { [key]: column });
    }
  }
  return sums as FleetSums;
}

interface GeneratedGpu {
  node: number;
  index: number;
  model: number;
  gpuHealth: GpuHealth;
  isFree: boolean;
  load: number;
  owner: number | null;
  random: () => number;
  /** The number of GPUs that the row stands for. */
  many: number;
}

class FleetBuilder {
  readonly owners: FleetOwner[] = [];
  readonly holds: FleetHold[] = [];
  readonly conditions: FleetCondition[] = [];
  private readonly places = new Map<string, number>();
  private readonly node: number[] = [];
  private readonly index: number[] = [];
  private readonly model: number[] = [];
  private readonly health: GpuHealth[] = [];
  private readonly processes: (number | null)[] = [];
  private readonly idle: (number | null)[] = [];
  private readonly state: GpuState[] = [];
  private readonly values = ['util', 'used', 'total', 'draw', 'limit', 'celsius'].map(
    (): (number | null)[] => [],
  );

  addSlurmJob(number: number): number {
    return this.addOwner({
      user: USERS[(number * 7) % USERS.length] ?? null,
      kind: 'slurm_job',
      id: String(88_000 + number),
      namespace: null,
    });
  }

  addGpu({ node, index, model, gpuHealth, isFree, load, owner, random, many }: GeneratedGpu): void {
    const place = this.node.length;
    const { memory, watts } = MODELS[model] ?? MODELS[0];
    const isKnown = gpuHealth === 'ok';
    const isIdle = !isFree && load < 0.04;
    this.node.push(node);
    this.index.push(index);
    this.model.push(model);
    this.health.push(gpuHealth);
    const share = isFree ? 0.004 : isIdle ? 0.2 + 0.5 * random() : 0.3 + 0.68 * random();
    const busy = isFree ? 0 : load;
    const row = [
      Math.round(busy * 100),
      Math.round(share * memory) * many,
      memory * many,
      Math.round(watts * (0.16 + 0.82 * busy * (0.9 + 0.1 * random()))) * many,
      watts * many,
      Math.round(29 + 50 * busy + 6 * random()),
    ];
    row.forEach((value, i) => this.values[i]?.push(isKnown ? value : null));
    this.processes.push(isKnown ? (isFree ? 0 : 1 + Math.floor(2 * random())) : null);
    this.state.push(
      isKnown
        ? isFree
          ? 'free'
          : isIdle
            ? 'idle'
            : 'busy'
        : gpuHealth === 'unknown'
          ? 'unknown'
          : 'lost',
    );
    this.idle.push(isKnown && isIdle ? 300 + Math.round(20_000 * random()) : null);
    if (isKnown && !isFree) {
      this.holds.push({ gpu: place, owner: owner ?? this.single(random) });
    }
    if (isKnown && busy > 0.97) {
      this.addCondition('throttled', 1);
    }
    if (isKnown && isIdle) {
      this.addCondition('held_idle', 1);
    }
  }

  /** Adds a condition to the GPU that was added last. */
  addCondition(kind: string, severity = kind === 'row_remap' ? 2 : 3): void {
    this.conditions.push({ gpu: this.node.length - 1, kind, severity });
  }

  buildGpus(): Fleet['gpus'] {
    const [util = [], used = [], total = [], draw = [], limit = [], celsius = []] = this.values;
    return {
      node: this.node,
      index: this.index,
      model: this.model,
      models: MODELS.map(({ name }) => name),
      health: this.health,
      readings: {
        'utilization.gpu_percent': util,
        'memory.used_bytes': used,
        'memory.total_bytes': total,
        'power.draw_watts': draw,
        'power.limit_watts': limit,
        'temperature.gpu_celsius': celsius,
      },
      processes: this.processes,
      idle_holding_s: this.idle,
      state: this.state,
      rank: [],
      unlisted: [],
    };
  }

  private single(random: () => number): number {
    const user = USERS[Math.floor(USERS.length * random() ** 2)] ?? null;
    const kind = random();
    const number = Math.floor(40 * random());
    if (kind < 0.4) {
      return this.addOwner({
        user,
        kind: 'notebook',
        id: `${['train', 'eval', 'explore'][number % 3] ?? ''}-${number}.ipynb`,
        namespace: null,
      });
    }
    return kind < 0.8
      ? this.addOwner({
          user,
          kind: 'pod',
          id: `llm-${number}`,
          namespace: NAMESPACES[number % 3] ?? null,
        })
      : this.addOwner({ user, kind: 'user', id: '', namespace: null });
  }

  private addOwner(owner: FleetOwner): number {
    const key = JSON.stringify(owner);
    const known = this.places.get(key);
    if (known !== undefined) {
      return known;
    }
    this.places.set(key, this.owners.length);
    return this.owners.push(owner) - 1;
  }
}

export function generateUsage(fleet: Fleet, range_s: number): FleetUsage {
  const random = createRandom(range_s);
  const gpus = new Map<number, number>();
  fleet.holds.forEach(({ owner }) => gpus.set(owner, (gpus.get(owner) ?? 0) + 1));
  const owners = fleet.owners.map((owner, place) => {
    const gpu_s = (gpus.get(place) ?? 0) * range_s * (0.2 + 0.8 * random());
    const active_gpu_s = gpu_s * (0.3 + 0.7 * random());
    return {
      owner,
      gpu_s,
      active_gpu_s,
      energy_joules: active_gpu_s * 540 + (gpu_s - active_gpu_s) * 120,
      nodes: 1,
    };
  });
  owners.sort((a, b) => b.gpu_s - a.gpu_s);
  return {
    from_ms: fleet.at_ms - range_s * 1000,
    to_ms: fleet.at_ms,
    state: 'current',
    problems: [],
    owners,
    owners_total: owners.length,
    unlisted: { name: null, owners: 0, gpu_s: null, active_gpu_s: null, energy_joules: null },
    users: groupUsage(owners, ({ user }) => user),
    namespaces: groupUsage(
      owners.filter(({ owner }) => owner.kind === 'pod'),
      ({ namespace }) => namespace,
    ),
    unheld_gpu_s: fleet.gpus.node.length * range_s * 0.14,
    unheld_energy_joules: fleet.gpus.node.length * range_s * 0.14 * 110,
    energy_joules: fleet.gpus.node.length * range_s * 430,
  };
}

function groupUsage(
  owners: readonly (Omit<FleetUsage['unlisted'], 'name' | 'owners'> & { owner: FleetOwner })[],
  nameOf: (owner: FleetOwner) => string | null,
): FleetUsage['users'] {
  const groups = new Map<string | null, FleetUsage['unlisted']>();
  for (const { owner, gpu_s, active_gpu_s, energy_joules } of owners) {
    const name = nameOf(owner);
    const group = groups.get(name) ?? {
      name,
      owners: 0,
      gpu_s: 0,
      active_gpu_s: 0,
      energy_joules: 0,
    };
    groups.set(name, {
      name,
      owners: group.owners + 1,
      gpu_s: (group.gpu_s ?? 0) + (gpu_s ?? 0),
      active_gpu_s: (group.active_gpu_s ?? 0) + (active_gpu_s ?? 0),
      energy_joules: (group.energy_joules ?? 0) + (energy_joules ?? 0),
    });
  }
  return [...groups.values()].sort((a, b) => (b.gpu_s ?? 0) - (a.gpu_s ?? 0));
}

export function generateEvents(fleet: Fleet, range_s: number): FleetEvents {
  const random = createRandom(7);
  const events: FleetEvent[] = [];
  fleet.nodes.health.forEach((health, node) => {
    if (health !== 'up') {
      events.push({
        node: fleet.nodes.name[node] ?? '',
        gpu: null,
        kind: 'node_unreachable',
        xid: null,
        count: 1,
        last_ms: fleet.at_ms,
        lasts: true,
      });
    }
  });
  fleet.gpus.health.forEach((health, row) => {
    const isLost = health === 'not_responding';
    if (isLost || random() < 0.012) {
      events.push({
        node: fleet.nodes.name[fleet.gpus.node[row] ?? 0] ?? '',
        gpu: fleet.gpus.index[row] ?? 0,
        kind: isLost ? 'gpu_not_responding' : 'xid',
        xid: isLost ? null : ([13, 31, 43, 45, 48, 63, 79, 94][Math.floor(8 * random())] ?? 13),
        count: 1 + Math.floor(4 * random() ** 3),
        last_ms: fleet.at_ms - Math.floor(range_s * 1000 * random()),
        lasts: isLost,
      });
    }
  });
  events.sort((a, b) => Number(b.lasts) - Number(a.lasts) || b.last_ms - a.last_ms);
  return {
    from_ms: fleet.at_ms - range_s * 1000,
    to_ms: fleet.at_ms,
    state: 'current',
    problems: [],
    events,
    events_total: events.length,
  };
}

/** Returns a history with more load by day than at night. */
export function generateHistory(fleet: Fleet, range_s: number, node: string | null): FleetHistory {
  const random = createRandom(range_s + (node?.length ?? 0));
  const step_ms = Math.max(60, range_s / 240) * 1000;
  const at_ms = Array.from(
    { length: Math.floor((range_s * 1000) / step_ms) + 1 },
    (_, i) => fleet.at_ms - range_s * 1000 + i * step_ms,
  );
  const gpus = node === null ? fleet.gpus.node.length : (fleet.nodes.gpus[0] ?? 8);
  let drift = 0;
  const load = at_ms.map((at) => {
    drift = 0.9 * drift + 0.02 * (random() - 0.5);
    return Math.min(
      1,
      Math.max(
        0,
        0.72 +
          0.12 * Math.sin((at / 86_400_000) * 2 * Math.PI) +
          (node === null ? drift : 4 * drift),
      ),
    );
  });
  const series = (id: string, of: (share: number) => number): FleetHistory['series'][number] => ({
    id,
    values: load.map(of),
  });
  return {
    node,
    state: 'current',
    problems: [],
    at_ms,
    series: [
      series('utilization.gpu_percent', (share) => 100 * share),
      series('memory.used_bytes', (share) => gpus * 100 * GIB * (0.3 + 0.6 * share)),
      series('memory.total_bytes', () => gpus * 104 * GIB),
      series('power.draw_watts', (share) => gpus * (110 + 500 * share)),
      series('gpus', () => gpus),
      series('gpus_held', (share) => Math.round(gpus * Math.min(1, 0.15 + share))),
    ],
  };
}

/** Returns the server's response for `url`, or `null` if the path is unknown. */
export function makeFleetResponse(fleet: Fleet, url: URL): unknown {
  const range_s = Number(url.searchParams.get('range_s') ?? 86_400);
  const node = url.searchParams.get('node');
  switch (url.pathname.replace(/^.*\/api\/v1\//, '')) {
    case 'fleet':
      return fleet;
    case 'fleet/usage':
      return generateUsage(fleet, range_s);
    case 'fleet/events':
      return generateEvents(fleet, range_s);
    case 'fleet/history':
      return generateHistory(fleet, range_s, node);
    case 'fleet/node':
      return {
        ...generateFleet({ nodes: 1, gpus: 8, at_ms: fleet.at_ms, nameOf: () => node ?? '' }),
        source: fleet.source,
      };
    default:
      return null;
  }
}
