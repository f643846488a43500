/** The past holders of GPUs, so that a chart of the past can name them after they have exited. */

import type { ColorSlots } from '../color-slots';
import type { GpuState } from '../gpu';
import { plainText } from '../../lib/text';
import { holderId, kernelHolderId, processName, programId, type ListRow } from '../holders';
import { notebookNames } from '../notebooks';
import { notebookPath } from '../owner';
import { absenceOf } from '../reading';
import type { FormerHolder } from '../store';
import type { Holder } from './plots';

/** The maximum number of holders that a chart names. The others would be too thin to see. */
const MAX_HOLDERS = 8;
const MAX_NAME_LENGTH = 120;

interface PastHolder extends Holder {
  gpu: number;
  /** The path of a notebook or console. */
  path: string | null;
  seen_ms: number;
}

export class PastHolders {
  /** The holders by GPU and holder ID. */
  private readonly all = new Map<string, PastHolder>();

  private former: ReadonlyMap<string, readonly FormerHolder[]> | null = null;

  /**
   * Adds the past holders that the server reports, by GPU UUID. Holders that are already known do
   * not change.
   */
  addFormerHolders(
    former: ReadonlyMap<string, readonly FormerHolder[]>,
    gpus: readonly GpuState[],
    slots: ColorSlots,
  ): void {
    if (former === this.former) {
      return;
    }
    this.former = former;
    for (const { index, uuid } of gpus) {
      for (const { process, seen_ms } of former.get(uuid ?? '') ?? []) {
        const holder = holderId(process);
        const key = `${index} ${holder}`;
        if (!this.all.has(key)) {
          const slot = slots.assignProgramSlot(programId(process));
          const [name, path] = [processName(process), notebookPath(process)];
          this.all.set(key, { gpu: index, holder, name, path, slot, memory_bytes: 0, seen_ms });
        }
      }
    }
  }

  /** Adds or updates the current holders. */
  record(rows: readonly ListRow[], now_ms: number): void {
    for (const row of rows) {
      if (row.kind === 'holder' && absenceOf(row.memory_bytes) === null) {
        const { key, gpu, holder, name, path, slot, memory_bytes } = row;
        this.all.set(key, { gpu, holder, name, path, slot, memory_bytes, seen_ms: now_ms });
      }
    }
  }

  /** Returns the paths of notebooks and consoles that used a GPU since `from_ms`. */
  pathsSince(from_ms: number): string[] {
    return [...this.all.values()].flatMap(({ path, seen_ms }) =>
      path !== null && seen_ms >= from_ms ? [path] : [],
    );
  }

  /**
   * Returns the path of the notebook or console that this kernel belongs or belonged to, or `null`
   * if it is unknown.
   */
  pathOf(kernelId: string): string | null {
    const holder = kernelHolderId(kernelId);
    for (const one of this.all.values()) {
      if (one.holder === holder && one.path !== null) {
        return one.path;
      }
    }
    return null;
  }

  /**
   * Returns the holders of each GPU since `from_ms`. The earliest come first, so that the order
   * does not change. Different notebooks among the holders and `otherPaths` have different names.
   */
  holdersSince(
    from_ms: number,
    now_ms: number,
    otherPaths: Iterable<string> = [],
  ): Map<number, Holder[]> {
    const names = notebookNames([...otherPaths, ...this.pathsSince(from_ms)]);
    const byGpu = new Map<number, Holder[]>();
    for (const one of this.all.values()) {
      const holders = byGpu.get(one.gpu) ?? [];
      byGpu.set(one.gpu, holders);
      if (one.seen_ms >= from_ms && holders.length < MAX_HOLDERS) {
        const { path, holder, slot } = one;
        const name = path === null ? one.name : plainText(names.get(path) ?? path, MAX_NAME_LENGTH);
        // A holder that has exited uses no memory.
        holders.push({
          holder,
          name,
          slot,
          memory_bytes: one.seen_ms < now_ms ? 0 : one.memory_bytes,
        });
      }
    }
    return byGpu;
  }

  /** Removes holders that have not been seen since `before_ms`. */
  prune(before_ms: number): void {
    for (const [key, { seen_ms }] of this.all) {
      if (seen_ms < before_ms) {
        this.all.delete(key);
      }
    }
  }
}
