/** The search for nodes with enough free GPUs, or for the node that comes closest. */

import { formatCount } from '../../lib/format';
import { trans } from '../../lib/translation';
import type { FleetOwner } from '../../wire';
import { isCritical, modelOf, type Columns } from './columns';
import { jobText, userText } from './describe';

export interface GpuRequest {
  gpus: number;
  /** The minimum total memory of each GPU in bytes; 0 if any size is enough. */
  memory_bytes: number;
  /** The required model name of the GPUs; `null` if any model is accepted. */
  model: string | null;
}

/** A node with free GPUs of one kind. */
export interface FreeNode {
  node: number;
  model: string | null;
  memory_bytes: number;
  /** The rows of the free GPUs. */
  rows: readonly number[];
  /** The number of free GPUs of this kind. */
  free: number;
  /** The number of GPUs of this kind on the node. */
  of: number;
}

/** The node that comes closest to a request. */
export interface NearestNode extends FreeNode {
  /** How many GPUs would be free if the idle jobs of `owners` ended. */
  later: number;
  owners: readonly FleetOwner[];
}

/** All GPUs of one kind on a node. */
interface GpuKind extends FreeNode {
  all: number[];
  rows: number[];
}

/**
 * A GPU is large enough if it reports at least this share of the requested memory. Firmware
 * reserves part of the memory, so a board of 80 GiB reports slightly less.
 */
const TOLERANCE = 0.97;

/**
 * Returns the nodes with enough free GPUs. Nodes with the fewest free GPUs come first, which leaves
 * empty nodes to larger jobs. Nodes with a critical GPU come last, because the whole node may be
 * faulty.
 */
export function findFreeNodes(
  columns: Columns,
  wanted: GpuRequest,
  shown: Uint8Array | null,
): readonly FreeNode[] {
  return groupGpusByKind(columns, wanted, shown)
    .filter(({ free }) => free > 0 && free >= wanted.gpus)
    .map((kind) => ({
      ...kind,
      isFailing: columns.rowsOf(kind.node).some((row) => isCritical(columns, row)),
    }))
    .sort(
      (a, b) =>
        Number(a.isFailing) - Number(b.isFailing) ||
        a.free - b.free ||
        a.memory_bytes - b.memory_bytes ||
        a.node - b.node,
    );
}

/**
 * Returns the node that comes closest to `wanted`, or `null` if no node has a suitable GPU. If all
 * GPUs of a job are idle, they count as GPUs that could become free.
 */
export function nearestNode(
  columns: Columns,
  wanted: GpuRequest,
  shown: Uint8Array | null,
): NearestNode | null {
  const isIdle = flagIdleOwners(columns);
  const enough = ({ later }: NearestNode): number => Math.min(later, wanted.gpus);
  const [best] = groupGpusByKind(columns, wanted, shown)
    .map((kind) => addIdleOwners(columns, kind, wanted.gpus, isIdle))
    .filter(({ later }) => later > 0)
    .sort(
      (a, b) =>
        enough(b) - enough(a) ||
        a.owners.length - b.owners.length ||
        b.free - a.free ||
        a.node - b.node,
    );
  return best ?? null;
}

/** Returns text such as `4 of 8 free on node0004; 8 if the idle Slurm job 4711 (ana) ends`. */
export function describeNearestNode(
  columns: Columns,
  { node, free, of, later, owners }: NearestNode,
): string {
  const name = columns.nodeNames[node] ?? '';
  const [first, ...others] = owners.map(describeIdleOwner);
  return first === undefined
    ? trans.__('%1 of %2 free on %3', formatCount(free), formatCount(of), name)
    : trans._n(
        '%2 of %3 free on %4; %5 if the idle %6 ends',
        '%2 of %3 free on %4; %5 if the idle %6 end',
        owners.length,
        formatCount(free),
        formatCount(of),
        name,
        formatCount(later),
        [first, ...others].join(', '),
      );
}

function describeIdleOwner(owner: FleetOwner): string {
  const [job, user] = [jobText(owner), userText(owner)];
  return job === ''
    ? trans.__('processes of %1', user ?? trans.__('an unknown user'))
    : user === null
      ? job
      : `${job} (${user})`;
}

function groupGpusByKind(
  columns: Columns,
  wanted: GpuRequest,
  shown: Uint8Array | null,
): GpuKind[] {
  const kinds = new Map<string, GpuKind>();
  for (let node = 0; node < columns.nodeNames.length; node += 1) {
    for (const row of columns.rowsOf(node)) {
      const gpus = columns.gpusOf(row);
      const total = columns.readings.memoryTotal[row] ?? NaN;
      const memory_bytes = columns.byGpu ? total : total / gpus;
      const model = modelOf(columns, row);
      const fits =
        (wanted.model === null || model === wanted.model) &&
        // If the memory of a GPU is unknown, the GPU matches only if any size is enough.
        (wanted.memory_bytes === 0 || memory_bytes >= wanted.memory_bytes * TOLERANCE);
      if (!fits || (shown !== null && shown[row] !== 1)) {
        continue;
      }
      const key = `${node} ${model ?? ''} ${Math.round(memory_bytes / 1024 ** 3)}`;
      const kind = kinds.get(key) ?? {
        node,
        model,
        memory_bytes,
        rows: [],
        all: [],
        free: 0,
        of: 0,
      };
      kinds.set(key, kind);
      kind.all.push(row);
      kind.of += gpus;
      if (columns.state[row] === 'free') {
        kind.rows.push(row);
        kind.free += gpus;
      }
    }
  }
  return [...kinds.values()];
}

/** Returns, for each owner, whether all of the owner's GPUs are idle. */
function flagIdleOwners({ fleet, state }: Columns): readonly boolean[] {
  const isIdle = fleet.owners.map(() => true);
  for (const { gpu, owner } of fleet.holds) {
    isIdle[owner] &&= state[gpu] === 'idle';
  }
  return isIdle;
}

/** Adds idle owners, those with the most GPUs first, until enough GPUs would be free. */
function addIdleOwners(
  columns: Columns,
  kind: GpuKind,
  wanted: number,
  isIdle: readonly boolean[],
): NearestNode {
  const idle = kind.all.filter((row) => {
    const owners = columns.ownersOf(row);
    return columns.state[row] === 'idle' && owners.length > 0 && owners.every((one) => isIdle[one]);
  });
  const held = new Map<number, number>();
  for (const row of idle) {
    for (const owner of columns.ownersOf(row)) {
      held.set(owner, (held.get(owner) ?? 0) + 1);
    }
  }
  const ended = new Set<number>();
  let later = kind.free;
  for (const [owner] of [...held].sort((a, b) => b[1] - a[1])) {
    if (later >= wanted) {
      break;
    }
    ended.add(owner);
    later = idle
      .filter((row) => columns.ownersOf(row).every((one) => ended.has(one)))
      .reduce((sum, row) => sum + columns.gpusOf(row), kind.free);
  }
  return { ...kind, later, owners: [...ended].flatMap((owner) => columns.owner(owner) ?? []) };
}
