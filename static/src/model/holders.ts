/**
 * The holders of a GPU: notebooks with all processes that their kernels started, and other
 * processes.
 */

import { groupBy } from '../lib/collections';
import { DASH } from '../lib/format';
import { plainText } from '../lib/text';
import { trans } from '../lib/translation';
import type { GpuSample, Notebook, Process, ProcessRef, Reading } from '../wire';
import type { ColorSlots } from './color-slots';
import { describeAbsence } from './describe';
import { seriesKey, type GpuState } from './gpu';
import { isConsolePath, notebookNames } from './notebooks';
import {
  instanceKey,
  notebookName,
  notebookPath,
  describeSharing,
  unusedAllocations,
} from './owner';
import { absenceOf, readingTime, valueOf } from './reading';

/**
 * Returns the current path of a kernel's notebook or console, or `null` if the kernel belongs to
 * another Jupyter server.
 */
export type PathOf = (kernelId: string) => string | null;

/** The use of one GPU by one holder. */
export interface HolderRow {
  kind: 'holder';
  key: string;
  gpu: number;
  /** The ID of the holder, which is the same on every GPU. */
  holder: string;
  slot: number;
  name: string;
  /** The notebook of a Jupyter kernel; `null` for other processes. */
  notebook: Notebook | null;
  /** The path of the kernel's notebook or console; `null` if it is unknown. */
  path: string | null;
  /** Whether the kernel belongs to a console. */
  isConsole: boolean;
  /** Whether the kernel belongs to this Jupyter server. */
  isOwn: boolean;
  /** The processes: the kernel itself first, then the largest. */
  processes: readonly [Process, ...Process[]];
  memory_bytes: Reading<number>;
  sm_percent: Reading<number>;
  host_memory_bytes: Reading<number>;
  /**
   * The time for which the processes have held memory without running a kernel; `null` if they are
   * not idle.
   */
  idle_ms: number | null;
  /** How the first process shares the GPU, for example through a MIG device or `MPS`. */
  shared: readonly string[];
}

const MAX_NAME_LENGTH = 120;

/** A row that replaces the processes of a GPU if they cannot be listed. */
export interface UnreadableRow {
  kind: 'unreadable';
  key: string;
  gpu: number;
  reason: string;
}

/**
 * A row that stands for processes of a GPU that are missing from the sample, because the sample has
 * no room for them.
 */
export interface OmittedRow {
  kind: 'omitted';
  key: string;
  gpu: number;
  count: number;
}

/**
 * A row for memory of processes in other PID namespaces. These processes are not visible to the
 * server.
 */
export interface UnlistedRow {
  kind: 'unlisted';
  key: string;
  gpu: number;
  bytes: number;
}

/**
 * A row for a GPU that is allocated to an owner, although no process of the owner is running there.
 */
export interface AllocatedRow {
  kind: 'allocated';
  key: string;
  gpu: number;
  to: string;
}

export type ListRow = HolderRow | UnreadableRow | OmittedRow | UnlistedRow | AllocatedRow;

/** Returns the rows of the process list, GPU by GPU, with the largest holder first. */
export function holderRows(
  gpus: readonly GpuState[],
  slots: ColorSlots,
  pathOf: PathOf = () => null,
): ListRow[] {
  const groups = new Map<GpuState, Map<string, Process[]>>(
    gpus.map((gpu) => [gpu, groupByHolder(gpu.now)]),
  );
  const present = new Map<string, { holder: string; program: string; gpus: number[] }>();
  for (const [gpu, held] of groups) {
    for (const [holder, [first]] of held) {
      const program = first === undefined ? holder : programId(first);
      const known = present.get(holder) ?? { holder, program, gpus: [] };
      known.gpus.push(gpu.index);
      present.set(holder, known);
    }
  }
  const colors = slots.assignSlots([...present.values()]);
  const rows = gpus.flatMap((gpu): ListRow[] => {
    const reason = unreadableReason(gpu);
    if (reason !== null) {
      return [{ ...makeNoteRow('unreadable', gpu), reason }];
    }
    const holders = [...(groups.get(gpu) ?? [])]
      .map(([holder, processes]) => rowOf(gpu, holder, processes, colors.get(holder) ?? 0, pathOf))
      .filter((row) => row !== null)
      .sort(
        (a, b) =>
          memorySortKey(b.memory_bytes) - memorySortKey(a.memory_bytes) ||
          a.processes[0].pid - b.processes[0].pid,
      );
    const count = gpu.now?.processes_omitted ?? 0;
    if (count > 0) {
      return [...holders, { ...makeNoteRow('omitted', gpu), count }];
    }
    const bytes = gpu.now?.unlisted_memory_bytes;
    if (bytes !== undefined) {
      return [...holders, { ...makeNoteRow('unlisted', gpu), bytes }];
    }
    const to = gpu.now === null ? [] : unusedAllocations(gpu.now);
    return to.length === 0
      ? holders
      : [...holders, { ...makeNoteRow('allocated', gpu), to: to.join(', ') }];
  });
  return withDistinctNames(rows);
}

/** Returns the common properties of rows that have a note instead of a holder. */
function makeNoteRow<Kind extends string>(
  kind: Kind,
  { index }: GpuState,
): { kind: Kind; key: string; gpu: number } {
  return { kind, key: `${kind} ${index}`, gpu: index };
}

/** Gives notebooks and consoles distinct names. */
function withDistinctNames(rows: readonly ListRow[]): ListRow[] {
  const names = notebookNames(
    rows.flatMap((row) => (row.kind === 'holder' && row.path !== null ? [row.path] : [])),
  );
  return rows.map((row) =>
    row.kind === 'holder' && row.path !== null
      ? { ...row, name: plainText(names.get(row.path) ?? row.path, MAX_NAME_LENGTH) }
      : row,
  );
}

/**
 * Returns the name of a process: its notebook's name if it has a notebook, otherwise its own name,
 * or its PID if it has no name.
 */
export function processName(
  process: Process | ProcessRef,
  names?: ReadonlyMap<string, string>,
): string {
  const name = ('owner' in process ? notebookName(process, names) : null) ?? valueOf(process.name);
  return name === null || name.trim() === ''
    ? trans.__('PID %1', process.pid)
    : plainText(name, MAX_NAME_LENGTH);
}

/** Returns distinct names for the notebooks of these processes by path. */
export function notebookNamesOf(processes: readonly (Process | ProcessRef)[]): Map<string, string> {
  return notebookNames(
    processes
      .map((process) => ('owner' in process ? notebookPath(process) : null))
      .filter((path) => path !== null),
  );
}

/**
 * Returns the text to display for a reading. If the text is a dash, also returns the reason why the
 * value is missing.
 */
export function textOf(reading: Reading<string>): { text: string; reason: string | null } {
  const absence = absenceOf(reading);
  return absence === null
    ? { text: plainText(valueOf(reading) ?? ''), reason: null }
    : { text: DASH, reason: describeAbsence(absence) };
}

/**
 * Returns why a GPU's processes cannot be listed. Returns `null` for a GPU whose state is not `ok`,
 * because its card already explains the reason.
 */
function unreadableReason(gpu: GpuState): string | null {
  const absence = gpu.now?.health.state === 'ok' ? absenceOf(gpu.now.processes) : null;
  return absence === null ? null : describeAbsence(absence);
}

/** Returns the GPU memory of each holder by holder ID; `null` if the memory is unknown. */
export function memoryByHolder(gpu: GpuSample): Map<string, number | null> {
  const groups = [...groupByHolder(gpu)];
  return new Map(
    groups.map(([holder, all]) => [
      holder,
      valueOf(sumReadings(all.map((one) => one.memory_bytes))),
    ]),
  );
}

/** Returns the name of the series with a holder's memory. */
export function holderSeriesKey(
  gpu: { index: number; uuid: string | null },
  holder: string,
): string {
  return seriesKey(gpu, `held ${holder}`);
}

function groupByHolder(now: GpuSample | null): Map<string, Process[]> {
  return groupBy(valueOf(now?.processes) ?? [], holderId);
}

/** Returns the holder ID of a notebook's kernel and the processes that it started. */
export function kernelHolderId(kernelId: string): string {
  return `kernel ${kernelId}`;
}

/**
 * Returns an ID that stays the same when the program is restarted. It consists of the user and the
 * notebook, or of the user and the program if there is no notebook.
 */
export function programId(process: Process): string {
  return `${textOf(process.user).text} ${valueOf(valueOf(process.owner)?.notebook?.path) ?? processName(process)}`;
}

/** Returns the holder ID of a process. The server's history uses the same IDs. */
export function holderId(process: Process): string {
  const notebook = valueOf(process.owner)?.notebook;
  if (notebook !== undefined) {
    return kernelHolderId(notebook.kernel_id);
  }
  // The ID contains the start time, because PIDs are reused. It also contains the partition,
  // because a process that uses two partitions has two entries in the list.
  const instance = process.mig === undefined ? '' : ` ${instanceKey(process.mig)}`;
  return `${process.pid} ${String(valueOf(process.started_ms) ?? '')} ${process.kind}${instance}`;
}

function rowOf(
  gpu: GpuState,
  holder: string,
  unsorted: readonly Process[],
  slot: number,
  pathOf: PathOf,
): HolderRow | null {
  const notebook =
    unsorted.map((process) => valueOf(process.owner)?.notebook).find((own) => own !== undefined) ??
    null;
  const rank = (process: Process): number =>
    process.pid === notebook?.kernel_pid ? Infinity : memorySortKey(process.memory_bytes);
  const [first, ...rest] = [...unsorted].sort((a, b) => rank(b) - rank(a) || a.pid - b.pid);
  if (first === undefined) {
    return null;
  }
  const processes: HolderRow['processes'] = [first, ...rest];
  const own = notebook === null ? null : pathOf(notebook.kernel_id);
  const path = own ?? valueOf(notebook?.path);
  return {
    kind: 'holder',
    key: `${gpu.index} ${holder}`,
    gpu: gpu.index,
    holder,
    slot,
    name: processName(first),
    notebook,
    path,
    isConsole: path !== null && isConsolePath(path),
    isOwn: own !== null,
    processes,
    memory_bytes: sumReadings(processes.map((process) => process.memory_bytes)),
    sm_percent: sumReadings(processes.map((process) => process.sm_percent)),
    // A process on two MIG instances is listed twice, but its host memory counts once.
    host_memory_bytes: sumReadings([
      ...new Map(processes.map((one) => [one.pid, one.host_memory_bytes])).values(),
    ]),
    idle_ms: findIdleTime(gpu, processes),
    shared: describeSharing(first, gpu.vendor),
  };
}

/**
 * Returns the sum of the known readings, with the time of the oldest known one. If no reading is
 * known, returns the reason why the first one is missing.
 */
function sumReadings(readings: readonly Reading<number>[]): Reading<number> {
  const known = readings.filter((reading) => valueOf(reading) !== null);
  const [first] = known.length > 0 ? known : readings;
  if (known.length < 2) {
    return first ?? { absent: 'unknown' };
  }
  const value = known.reduce((sum: number, reading) => sum + (valueOf(reading) ?? 0), 0);
  const times = known.map(readingTime).filter((at_ms) => at_ms !== null);
  return times.length === 0 ? value : { value, at_ms: Math.min(...times) };
}

/**
 * Returns how long the processes have held memory idle, or `null` if the server does not report it.
 */
function findIdleTime(gpu: GpuState, processes: readonly Process[]): number | null {
  for (const condition of gpu.now?.conditions ?? []) {
    if (
      condition.condition === 'held_idle' &&
      processes.every(({ pid }) => condition.pids.includes(pid))
    ) {
      return condition.idle_ms;
    }
  }
  return null;
}

function memorySortKey(memory: Reading<number>): number {
  return valueOf(memory) ?? -1;
}

/** Returns the kernel of a notebook on this Jupyter server, or `null` for other holders. */
export function notebookKernelId({ notebook, isOwn }: HolderRow): string | null {
  return isOwn ? (notebook?.kernel_id ?? null) : null;
}

/**
 * Returns a holder's name, with its user unless it is a notebook of this Jupyter server:
 * `train.ipynb`, `vllm (bob)`.
 */
export function holderName(row: HolderRow): string {
  if (row.isOwn) {
    return row.name;
  }
  const user = textOf(row.processes[0].user);
  return user.reason === null ? `${row.name} (${plainText(user.text, 32)})` : row.name;
}

/** Returns the memory of a holder in bytes, or 0 if it is unknown. */
export function holderBytes(row: HolderRow): number {
  return valueOf(row.memory_bytes) ?? 0;
}
