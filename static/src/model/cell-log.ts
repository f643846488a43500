/** The executions of notebook cells that used GPUs, for charts and tables. */

import { plainText } from '../lib/text';
import type { Event } from '../wire';
import { costFromHistory, type CellCost } from './cell-cost';
import type { PathOf } from './holders';
import { parseLimitSummary } from './limits';
import { notebookNames } from './notebooks';

export interface CellExecution {
  /** The unique identifier of the execution. */
  key: string;
  kernelId: string;
  cellId: string;
  notebook: string;
  /**
   * The notebook's path when the cell ran. It is `null` for executions from the server's history,
   * which contains only the file name.
   */
  path: string | null;
  /** The kernel's execution count; `null` if the kernel does not count. */
  count: number | null;
  code: string;
  running: boolean;
  cost: CellCost;
}

export type CellOrder = 'elapsed' | 'gpu' | 'peak' | 'energy';

/**
 * The maximum number of executions to keep. A full day of work in a notebook produces hundreds of
 * executions.
 */
const MAX_EXECUTIONS = 500;
const MAX_NAME_LENGTH = 80;
const MAX_NOTEBOOK_LENGTH = 120;
/**
 * The maximum number of stored characters of code, which are enough to recognize a cell on another
 * page.
 */
const MAX_STORED_CODE_LENGTH = 300;

const STORAGE_KEY = 'gpumon:cells';

export class CellLog {
  private readonly all = new Map<string, CellExecution>();
  /** The list of all executions, cached until it changes. */
  private listed: readonly CellExecution[] | null = null;
  private storage: Pick<Storage, 'getItem' | 'setItem'> | null = null;

  /**
   * Loads the stored executions, and stores each execution that ends, so that they survive a reload
   * of the page. Access to the storage may throw if the browser forbids it.
   */
  attachStorage(storageOf: () => Pick<Storage, 'getItem' | 'setItem'>): void {
    if (this.storage !== null) {
      return;
    }
    try {
      this.storage = storageOf();
      const stored: unknown = JSON.parse(this.storage.getItem(STORAGE_KEY) ?? '[]');
      const known = Array.isArray(stored) ? stored.filter(isExecution) : [];
      // Executions that were stored by earlier versions have no path and no limits.
      known.forEach(({ path = null, cost, ...one }) => {
        const limits = parseLimitSummary(cost.limits);
        this.all.set(one.key, { ...one, path, cost: { ...cost, limits } });
      });
      this.listed = null;
    } catch {
      // Without storage, the page starts with an empty list.
    }
  }

  /** Adds or updates an execution. */
  put(execution: CellExecution): void {
    this.all.set(execution.key, execution);
    this.listed = null;
    this.dropOldest();
    if (!execution.running) {
      this.storeExecutions();
    }
  }

  /** The executions, oldest first. */
  get executions(): readonly CellExecution[] {
    return (this.listed ??= [...this.all.values()]);
  }

  private dropOldest(): void {
    for (const key of this.all.keys()) {
      if (this.all.size <= MAX_EXECUTIONS) {
        break;
      }
      this.all.delete(key);
    }
  }

  private storeExecutions(): void {
    const ended = this.executions
      .filter(({ running }) => !running)
      .map((one) => ({ ...one, code: skipLeadingComments(one).slice(0, MAX_STORED_CODE_LENGTH) }));
    try {
      this.storage?.setItem(STORAGE_KEY, JSON.stringify(ended));
    } catch {
      // The storage is full. The executions remain in memory.
    }
  }
}

/**
 * Returns the executions in the server's history that are not in `own`. They are those of other
 * users, and those of this page before a reload. Their code is not known.
 */
export function executionsFromHistory(
  events: readonly Event[],
  own: readonly CellExecution[],
): CellExecution[] {
  const identity = (kernelId: string, started_ms: number): string =>
    `${kernelId} ${Math.round(started_ms)}`;
  const known = new Set(own.map(({ kernelId, cost }) => identity(kernelId, cost.started_ms)));
  return events.flatMap((event) => {
    if (event.what !== 'cell' || known.has(identity(event.kernel_id, event.started_ms))) {
      return [];
    }
    const { notebook, kernel_id: kernelId, cell_id: cellId, execution_count: count } = event;
    const key = identity(kernelId, event.started_ms);
    const ids = { key, kernelId, cellId, notebook: plainText(notebook), path: null };
    return [{ ...ids, count, code: '', running: false, cost: costFromHistory(event) }];
  });
}

/**
 * Returns a function that returns the name of an execution's notebook. The names of all these
 * notebooks and of the paths in `others` are distinct. While a kernel is running, the current path
 * of its notebook is used.
 */
export function createNotebookNamer(
  executions: readonly CellExecution[],
  pathOf: PathOf,
  others: Iterable<string>,
): (execution: CellExecution) => string {
  const paths = new Map<string, string>();
  const current = new Map<string, string | null>();
  for (const { kernelId, path } of executions) {
    const now = current.has(kernelId) ? current.get(kernelId) : pathOf(kernelId);
    current.set(kernelId, now ?? null);
    const known = now ?? path;
    if (known !== null) {
      paths.set(kernelId, known);
    }
  }
  const pathOrName = ({ kernelId, notebook }: CellExecution): string =>
    paths.get(kernelId) ?? notebook;
  const names = notebookNames([...others, ...executions.map(pathOrName)]);
  return (execution) =>
    plainText(names.get(pathOrName(execution)) ?? execution.notebook, MAX_NOTEBOOK_LENGTH);
}

/**
 * Returns a name such as `[3] model.fit(data)`, which contains the first line of code that is
 * neither empty nor a comment.
 */
export function executionName(execution: CellExecution): string {
  const [line = ''] = skipLeadingComments(execution).split('\n');
  return plainText(`${executionLabel(execution.count)} ${line}`.trim(), MAX_NAME_LENGTH);
}

/** Returns the code from its first line that is neither empty nor a comment. */
function skipLeadingComments({ code }: CellExecution): string {
  return (/^[^\S\n]*[^\s#][^]*/m.exec(code)?.[0] ?? code).trim();
}

/**
 * Returns whether a stored value is a valid execution. The value may have been stored by another
 * page or version.
 */
function isExecution(
  stored: unknown,
): stored is Omit<CellExecution, 'path'> & { path?: string | null } {
  const { path = null, ...execution } = Object(stored) as Record<keyof CellExecution, unknown>;
  const { key, kernelId, cellId, notebook, code, count, cost } = execution;
  const { started_ms, ended_ms, duration_s, gpus, ...taken } = Object(cost) as Record<
    keyof CellCost,
    unknown
  >;
  const { gpu_s, peak_memory_bytes, memory_change_bytes, energy_joules } = taken;
  const isNumber = (value: unknown): boolean => typeof value === 'number';
  return (
    [key, kernelId, cellId, notebook, code].every((value) => typeof value === 'string') &&
    (path === null || typeof path === 'string') &&
    [started_ms, ended_ms, duration_s].every(isNumber) &&
    [count, gpu_s, peak_memory_bytes, memory_change_bytes, energy_joules].every(
      (value) => value === null || isNumber(value),
    ) &&
    Array.isArray(gpus) &&
    gpus.every(isNumber)
  );
}

/** Returns a label such as `[3]`, or `[ ]` if the kernel does not count. */
export function executionLabel(count: number | null): string {
  return `[${count === null ? ' ' : String(count)}]`;
}

/**
 * Returns the executions that used any of `gpus`, sorted by the cost that `order` names, the
 * highest first.
 */
export function selectAndSortByCost(
  executions: readonly CellExecution[],
  order: CellOrder,
  gpus: ReadonlySet<number>,
): CellExecution[] {
  const worth = ({ cost }: CellExecution): number =>
    ({
      elapsed: cost.duration_s,
      gpu: cost.gpu_s,
      peak: cost.peak_memory_bytes,
      energy: cost.energy_joules,
    })[order] ?? -1;
  return executions
    .filter(({ cost }) => cost.gpus.some((index) => gpus.has(index)))
    .sort((a, b) => worth(b) - worth(a) || b.cost.started_ms - a.cost.started_ms);
}
