/**
 * The list of benchmarks: a few presets for common questions, then every other workload of the
 * server. Each is a job that the server can run on a device.
 */

import { plainText } from '../lib/text';
import { lazyTexts, trans } from '../lib/translation';
import type { CatalogueEntry, RunKind } from '../wire';
import type { GpuState } from './gpu';

export interface Benchmark {
  /** The unique identifier of the entry. */
  key: string;
  kind: RunKind;
  /** The workloads that run in one job. */
  ids: readonly string[];
  title: string;
  does: string;
  /** The approximate duration in seconds; `null` if it is unknown. */
  seconds: number | null;
  onCpu: boolean;
  /** Additional search terms. */
  words: string;
}

export interface BenchmarkGroup {
  label: string;
  benchmarks: readonly Benchmark[];
}

type Preset = Pick<Benchmark, 'key' | 'kind' | 'ids' | 'title' | 'does' | 'seconds'>;

/** The presets. Their durations are those of an H100 with 16 CPU cores, rounded up. */
const PRESETS = lazyTexts((): readonly Preset[] => [
  {
    key: 'bandwidth',
    kind: 'bench',
    ids: ['read', 'write', 'copy', 'triad'],
    title: trans.__('Memory bandwidth'),
    does: trans.__('How fast a device reads, writes and copies its own memory.'),
    seconds: 10,
  },
  {
    key: 'product',
    kind: 'bench',
    ids: ['matmul'],
    title: trans.__('Matrix product'),
    does: trans.__('How fast large matrices are multiplied, in every data type.'),
    seconds: 20,
  },
  {
    key: 'pcie',
    kind: 'bench',
    ids: ['h2d-pinned', 'h2d-pageable', 'd2h-pinned', 'd2h-pageable', 'both-pinned'],
    title: trans.__('PCIe transfers'),
    does: trans.__(
      'How fast arrays move between host and GPU, from pinned and from pageable memory.',
    ),
    seconds: 15,
  },
  {
    key: 'stress',
    kind: 'burn',
    ids: ['burn'],
    title: trans.__('Stress test'),
    does: trans.__('Power, temperature and computation errors under full load.'),
    seconds: BURN_S,
  },
  {
    key: 'memory',
    kind: 'oom',
    ids: ['fill'],
    title: trans.__('Out-of-memory demo'),
    does: trans.__('What happens when memory is full, and what helps.'),
    seconds: 20,
  },
]);

const GROUPS = lazyTexts((): readonly [RunKind, string][] => [
  ['bench', trans.__('Workloads')],
  ['seeds', trans.__('Tutorial benchmarks')],
  ['burn', trans.__('Stress tests')],
  ['oom', trans.__('Out-of-memory demos')],
  ['selftest', trans.__('Self-test')],
]);

/**
 * Returns the presets, followed by the other workloads. A workload that has its own preset is not
 * listed again.
 */
export function benchmarkGroups(entries: readonly CatalogueEntry[]): BenchmarkGroup[] {
  const presets = PRESETS().flatMap((preset) => {
    const found = entries.filter(({ kind, id }) => kind === preset.kind && preset.ids.includes(id));
    return found.length === 0 ? [] : [fromPreset(preset, found)];
  });
  const alone = new Set(
    presets.flatMap(({ kind, ids }) => (ids.length === 1 ? [`${kind} ${ids.join('')}`] : [])),
  );
  const rest = GROUPS().map(([kind, label]) => {
    const own = entries.filter((entry) => entry.kind === kind && !alone.has(`${kind} ${entry.id}`));
    return { label, benchmarks: own.map(fromEntry) };
  });
  return [{ label: trans.__('Presets'), benchmarks: presets }, ...rest].filter(
    ({ benchmarks }) => benchmarks.length > 0,
  );
}

/** Returns whether the entry contains every word of the query. */
export function matchesQuery({ title, does, words }: Benchmark, query: string): boolean {
  const text = `${title} ${does} ${words}`.toLowerCase();
  return query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

function fromPreset(preset: Preset, found: readonly CatalogueEntry[]): Benchmark {
  return {
    ...preset,
    ids: found.map(({ id }) => id),
    onCpu: found.every(({ on_cpu }) => on_cpu),
    words: found.map(({ id, title, does }) => plainText(`${id} ${title} ${does}`)).join(' '),
  };
}

function fromEntry({ kind, id, title, does, teaches, on_cpu }: CatalogueEntry): Benchmark {
  return {
    key: `${kind} ${id}`,
    kind,
    ids: [id],
    title: plainText(title),
    does: plainText(does),
    seconds: null,
    onCpu: on_cpu,
    words: plainText(`${id} ${teaches}`),
  };
}

export interface RunTarget {
  /** The unique identifier of the target. */
  key: string;
  name: string;
  where: { backend: 'cuda'; device: string } | { backend: 'cpu' };
}

/** How long the out-of-memory demo holds the memory, in seconds. */
const HOLD_S = 10;
const BURN_S = 60;

/**
 * Returns the devices that can run jobs. GPUs are identified by UUID, because CUDA may number them
 * in another order than the driver.
 */
export function listTargets(gpus: readonly GpuState[]): RunTarget[] {
  const targets: RunTarget[] = gpus.flatMap(({ index, name, uuid }) =>
    uuid === null
      ? []
      : [
          {
            key: uuid,
            name: trans.__('GPU %1, %2', index, plainText(name)),
            where: { backend: 'cuda', device: uuid },
          },
        ],
  );
  return [...targets, { key: 'cpu', name: trans.__('CPU'), where: { backend: 'cpu' } }];
}

export function runsOn({ onCpu }: Benchmark, { where }: RunTarget): boolean {
  return onCpu || where.backend === 'cuda';
}

/**
 * Returns the job in the server's format, or `null` if this version of the page does not know the
 * kind.
 */
export function createJob({ kind, ids }: Benchmark, { where }: RunTarget): object | null {
  switch (kind) {
    case 'bench':
      return { kind, ids, where };
    case 'seeds':
      return { kind, rows: ids, where };
    case 'burn':
      return { kind, where, seconds: BURN_S };
    case 'oom':
      return { kind, scenario: ids[0], where, hold_seconds: HOLD_S };
    case 'selftest':
      return { kind, where };
    default:
      return null;
  }
}
