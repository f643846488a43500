/** The executions of notebooks' cells that took something of the GPUs, for charts and tables. */

import { plainText } from '../lib/text';
import type { Event } from '../wire';
import { recordedCost, type CellCost } from './cell-cost';
import type { PathOf } from './holders';
import { notebookNames } from './notebook-names';

export interface CellExecution {
  /** Tells an execution from others. */
  key: string;
  kernelId: string;
  cellId: string;
  /** The notebook's file name. */
  notebook: string;
  /**
   * The notebook's path when the cell ran; `null` for executions that the server remembers, by the
   * file name alone.
   */
  path: string | null;
  /** As the notebook counts them; `null` where the kernel does not. */
  count: number | null;
  code: string;
  running: boolean;
  cost: CellCost;
}

export type CellOrder = 'elapsed' | 'gpu' | 'peak' | 'energy';

/** A notebook worked in all day has hundreds. */
const KEPT = 500;
const LONGEST_NAME = 80;
const LONGEST_NOTEBOOK = 120;
/** Enough to know a cell again in another page. */
const LONGEST_STORED_CODE = 300;

const STORED_UNDER = 'gpumon:cells';

export class CellLog {
  private readonly all = new Map<string, CellExecution>();
  /** All of them, the same until there is another. */
  private listed: readonly CellExecution[] | null = null;
  private storage: Pick<Storage, 'getItem' | 'setItem'> | null = null;

  /**
   * Takes in what was stored there, and stores each execution that ends: a page that is loaded anew
   * knows them. A browser may forbid even to ask for the storage.
   */
  keepIn(storageOf: () => Pick<Storage, 'getItem' | 'setItem'>): void {
    if (this.storage !== null) {
      return;
    }
    try {
      this.storage = storageOf();
      const stored: unknown = JSON.parse(this.storage.getItem(STORED_UNDER) ?? '[]');
      const known = Array.isArray(stored) ? stored.filter(isExecution) : [];
      // Earlier versions stored no path.
      known.forEach((one) => this.all.set(one.key, { ...one, path: one.path ?? null }));
      this.listed = null;
    } catch {
      // This page begins with what it sees itself.
    }
  }

  /** Takes in an execution, or what has become of it. */
  put(execution: CellExecution): void {
    this.all.set(execution.key, execution);
    this.listed = null;
    this.forgetOldest();
    if (!execution.running) {
      this.store();
    }
  }

  /** The oldest first. */
  get executions(): readonly CellExecution[] {
    return (this.listed ??= [...this.all.values()]);
  }

  private forgetOldest(): void {
    for (const key of this.all.keys()) {
      if (this.all.size <= KEPT) {
        break;
      }
      this.all.delete(key);
    }
  }

  private store(): void {
    const ended = this.executions
      .filter(({ running }) => !running)
      .map((one) => ({ ...one, code: tellingCode(one).slice(0, LONGEST_STORED_CODE) }));
    try {
      this.storage?.setItem(STORED_UNDER, JSON.stringify(ended));
    } catch {
      // The browser gives no room for more. The page still knows them.
    }
  }
}

/**
 * What others have run, or this page before it was loaded anew, as the server remembers it; without
 * code.
 */
export function recorded(events: readonly Event[], own: readonly CellExecution[]): CellExecution[] {
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
    return [{ ...ids, count, code: '', running: false, cost: recordedCost(event) }];
  });
}

/**
 * Returns the name of each execution's notebook, told apart from the others and from notebooks with
 * these paths. A kernel that still runs has the path that its notebook has now.
 */
export function notebookNamer(
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
    plainText(names.get(pathOrName(execution)) ?? execution.notebook, LONGEST_NOTEBOOK);
}

/**
 * What an execution is called: `[3] model.fit(data)`, the first line of its code that says
 * something.
 */
export function executionName(execution: CellExecution): string {
  const [line = ''] = tellingCode(execution).split('\n');
  return plainText(`${executionLabel(execution.count)} ${line}`.trim(), LONGEST_NAME);
}

/** The code from the first line on that says something. */
function tellingCode({ code }: CellExecution): string {
  return (/^[^\S\n]*[^\s#][^]*/m.exec(code)?.[0] ?? code).trim();
}

/** Whether it is what another page stored, perhaps one of another version. */
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

/** `[3]`; `[ ]` where the kernel does not count. */
export function executionLabel(count: number | null): string {
  return `[${count === null ? ' ' : String(count)}]`;
}

/** The executions on these GPUs, the most expensive first. */
export function byCost(
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
