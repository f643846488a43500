/**
 * Who holds a GPU: notebooks with all that their kernels have started, and processes of nobody's
 * notebook.
 */

import { DASH } from '../lib/format';
import { grouped } from '../lib/grouped';
import { plainText } from '../lib/text';
import { trans } from '../lib/translation';
import type { GpuSample, Notebook, Process, ProcessRef, Reading } from '../wire';
import type { ColorSlots } from './color-slots';
import { seriesKey, type GpuState } from './gpu';
import { isConsolePath, notebookNames } from './notebook-names';
import { instanceKey, notebookName, notebookPath, sharedBy, unusedAllocations } from './owner';
import { absenceOf, takenAt, valueOf } from './reading';
import { describeAbsence } from './describe';

/**
 * Returns the current path of a kernel's notebook or console; `null` if the kernel is not of this
 * Jupyter server.
 */
export type PathOf = (kernelId: string) => string | null;

/** What one holder has of one GPU. */
export interface HolderRow {
  kind: 'holder';
  key: string;
  gpu: number;
  /** Tells holders apart, the same on every GPU. */
  holder: string;
  slot: number;
  name: string;
  /** The notebook of a Jupyter kernel; `null` for other processes. */
  notebook: Notebook | null;
  /** The path of the kernel's notebook or console, if known. */
  path: string | null;
  /** Whether the kernel is a console's. */
  isConsole: boolean;
  /** Whether the kernel is of this Jupyter server. */
  isOwn: boolean;
  /** Never empty: the kernel itself first, then the largest. */
  processes: readonly [Process, ...Process[]];
  memory_bytes: Reading<number>;
  sm_percent: Reading<number>;
  host_memory_bytes: Reading<number>;
  /** How long they have held memory while nothing ran; `null` where that is not so. */
  idle_ms: number | null;
  /** How the first process shares the GPU. */
  shared: readonly string[];
}

const LONGEST_NAME = 120;

/** Stands for the processes of a GPU that cannot be listed. */
export interface UnreadableRow {
  kind: 'unreadable';
  key: string;
  gpu: number;
  reason: string;
}

/** Stands for the processes of a GPU for which a sample has no room. */
export interface OmittedRow {
  kind: 'omitted';
  key: string;
  gpu: number;
  count: number;
}

/** A row for processes of other PID namespaces, which are not visible. */
export interface UnlistedRow {
  kind: 'unlisted';
  key: string;
  gpu: number;
  bytes: number;
}

/** Says to whom a GPU is given, while none of their processes is on it. */
export interface AllocatedRow {
  kind: 'allocated';
  key: string;
  gpu: number;
  to: string;
}

export type ListRow = HolderRow | UnreadableRow | OmittedRow | UnlistedRow | AllocatedRow;

/** The rows of the list: GPU by GPU, the largest holder of memory first. */
export function holderRows(
  gpus: readonly GpuState[],
  slots: ColorSlots,
  pathOf: PathOf = () => null,
): ListRow[] {
  const groups = new Map<GpuState, Map<string, Process[]>>(
    gpus.map((gpu) => [gpu, groupsOf(gpu.now)]),
  );
  const present = new Map<string, { holder: string; program: string; gpus: number[] }>();
  for (const [gpu, held] of groups) {
    for (const [holder, [first]] of held) {
      const program = first === undefined ? holder : programOf(first);
      const known = present.get(holder) ?? { holder, program, gpus: [] };
      known.gpus.push(gpu.index);
      present.set(holder, known);
    }
  }
  const colors = slots.assign([...present.values()]);
  const rows = gpus.flatMap((gpu): ListRow[] => {
    const reason = unreadable(gpu);
    if (reason !== null) {
      return [{ kind: 'unreadable', key: `unreadable ${gpu.index}`, gpu: gpu.index, reason }];
    }
    const holders = [...(groups.get(gpu) ?? [])]
      .map(([holder, processes]) => rowOf(gpu, holder, processes, colors.get(holder) ?? 0, pathOf))
      .filter((row) => row !== null)
      .sort(
        (a, b) =>
          held(b.memory_bytes) - held(a.memory_bytes) || a.processes[0].pid - b.processes[0].pid,
      );
    const count = gpu.now?.processes_omitted ?? 0;
    const omitted = {
      kind: 'omitted',
      key: `omitted ${gpu.index}`,
      gpu: gpu.index,
      count,
    } as const;
    if (count > 0) {
      return [...holders, omitted];
    }
    const bytes = gpu.now?.unlisted_memory_bytes;
    if (bytes !== undefined) {
      return [
        ...holders,
        { kind: 'unlisted', key: `unlisted ${gpu.index}`, gpu: gpu.index, bytes },
      ];
    }
    const to = gpu.now === null ? [] : unusedAllocations(gpu.now);
    const allocated = {
      kind: 'allocated',
      key: `allocated ${gpu.index}`,
      gpu: gpu.index,
      to: to.join(', '),
    } as const;
    return to.length === 0 ? holders : [...holders, allocated];
  });
  return withDistinctNames(rows);
}

/** Names rows of notebooks and consoles so that their names differ. */
function withDistinctNames(rows: readonly ListRow[]): ListRow[] {
  const names = notebookNames(
    rows.flatMap((row) => (row.kind === 'holder' && row.path !== null ? [row.path] : [])),
  );
  return rows.map((row) =>
    row.kind === 'holder' && row.path !== null
      ? { ...row, name: plainText(names.get(row.path) ?? row.path, LONGEST_NAME) }
      : row,
  );
}

/** The name of a process: its notebook, else its name, else its PID where the name is not known. */
export function processName(
  process: Process | ProcessRef,
  names?: ReadonlyMap<string, string>,
): string {
  const name = ('owner' in process ? notebookName(process, names) : null) ?? valueOf(process.name);
  return name === null || name.trim() === ''
    ? trans.__('PID %1', process.pid)
    : plainText(name, LONGEST_NAME);
}

/** Returns distinct names for the notebooks of these processes, by their paths. */
export function notebookNamesOf(processes: readonly (Process | ProcessRef)[]): Map<string, string> {
  return notebookNames(
    processes
      .map((process) => ('owner' in process ? notebookPath(process) : null))
      .filter((path) => path !== null),
  );
}

/** A text reading as it is shown, and why it is a dash where it is one. */
export function textOf(reading: Reading<string>): { text: string; reason: string | null } {
  const absence = absenceOf(reading);
  return absence === null
    ? { text: plainText(valueOf(reading) ?? ''), reason: null }
    : { text: DASH, reason: describeAbsence(absence) };
}

/**
 * Why a GPU's processes cannot be listed. The card of a lost GPU explains it, so that they need no
 * line of their own.
 */
function unreadable(gpu: GpuState): string | null {
  const absence = gpu.now?.health.state === 'ok' ? absenceOf(gpu.now.processes) : null;
  return absence === null ? null : describeAbsence(absence);
}

/** The GPU memory of each holder, by its key; `null` where that is not known. */
export function heldBy(gpu: GpuSample): Map<string, number | null> {
  const groups = [...groupsOf(gpu)];
  return new Map(
    groups.map(([holder, all]) => [holder, valueOf(together(all.map((one) => one.memory_bytes)))]),
  );
}

/** The name of the series of what a holder has. */
export function heldKey(gpu: { index: number; uuid: string | null }, holder: string): string {
  return seriesKey(gpu, `held ${holder}`);
}

function groupsOf(now: GpuSample | null): Map<string, Process[]> {
  return grouped(valueOf(now?.processes) ?? [], holderOf);
}

/** What the holder is called that is a notebook's kernel, with all it has started. */
export function kernelHolder(kernelId: string): string {
  return `kernel ${kernelId}`;
}

/** What outlives a process: the notebook, or the program of a user. */
export function programOf(process: Process): string {
  return `${textOf(process.user).text} ${valueOf(valueOf(process.owner)?.notebook?.path) ?? processName(process)}`;
}

/** Who holds what a process holds. The server remembers by the same. */
export function holderOf(process: Process): string {
  const notebook = valueOf(process.owner)?.notebook;
  if (notebook !== undefined) {
    return kernelHolder(notebook.kernel_id);
  }
  // A PID alone is used again. A process that holds two partitions is listed once for each.
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
    process.pid === notebook?.kernel_pid ? Infinity : held(process.memory_bytes);
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
    memory_bytes: together(processes.map((process) => process.memory_bytes)),
    sm_percent: together(processes.map((process) => process.sm_percent)),
    // A process in two MIG instances is listed twice.
    host_memory_bytes: together([
      ...new Map(processes.map((one) => [one.pid, one.host_memory_bytes])).values(),
    ]),
    idle_ms: idleOf(gpu, processes),
    shared: sharedBy(first, gpu.vendor),
  };
}

/**
 * The sum of what is known; it is as old as the oldest part. Where nothing is known, the reason of
 * the first.
 */
function together(readings: readonly Reading<number>[]): Reading<number> {
  const known = readings.filter((reading) => valueOf(reading) !== null);
  const [first] = known.length > 0 ? known : readings;
  if (known.length < 2) {
    return first ?? { absent: 'unknown' };
  }
  const value = known.reduce((sum: number, reading) => sum + (valueOf(reading) ?? 0), 0);
  const times = known.map(takenAt).filter((at_ms) => at_ms !== null);
  return times.length === 0 ? value : { value, at_ms: Math.min(...times) };
}

/** The server says of a GPU that memory is held idle, and by whom. */
function idleOf(gpu: GpuState, processes: readonly Process[]): number | null {
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

function held(memory: Reading<number>): number {
  return valueOf(memory) ?? -1;
}
