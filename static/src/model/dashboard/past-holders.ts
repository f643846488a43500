/** Remembers who held GPUs, so that a chart of the past can name them after they have gone. */

import type { ColorSlots } from '../color-slots';
import type { GpuState } from '../gpu';
import { holderOf, notebookNamesOf, processName, programOf, type ListRow } from '../holders';
import { absenceOf } from '../reading';
import type { FormerHolder } from '../store';
import type { Holder } from './plots';

/** What a chart names at most; the rest is too thin to be seen. */
const MOST = 8;

interface Remembered extends Holder {
  seen_ms: number;
}

export class PastHolders {
  /** By GPU and holder. */
  private readonly all = new Map<string, Remembered & { gpu: number }>();

  private former: ReadonlyMap<string, readonly FormerHolder[]> | null = null;

  /** Takes in whom a server remembers, by the UUID of the GPU; those who are known already stay as they are. */
  recall(former: ReadonlyMap<string, readonly FormerHolder[]>, gpus: readonly GpuState[], slots: ColorSlots): void {
    if (former === this.former) {
      return;
    }
    this.former = former;
    const names = notebookNamesOf([...former.values()].flat().map(({ process }) => process));
    for (const { index, uuid } of gpus) {
      for (const { process, seen_ms } of former.get(uuid ?? '') ?? []) {
        const holder = holderOf(process);
        const key = `${index} ${holder}`;
        if (!this.all.has(key)) {
          const slot = slots.ofProgram(programOf(process));
          this.all.set(key, { gpu: index, holder, name: processName(process, names), slot, memory_bytes: 0, seen_ms });
        }
      }
    }
  }

  /** Takes in who holds what now. */
  record(rows: readonly ListRow[], now_ms: number): void {
    for (const row of rows) {
      if (row.kind === 'holder' && absenceOf(row.memory_bytes) === null) {
        const { key, gpu, holder, name, slot, memory_bytes } = row;
        this.all.set(key, { gpu, holder, name, slot, memory_bytes, seen_ms: now_ms });
      }
    }
  }

  /** Those who held each GPU since `from_ms`: who came first stands first, so that nobody changes places. */
  since(from_ms: number, now_ms: number): Map<number, Holder[]> {
    const byGpu = new Map<number, Holder[]>();
    for (const one of this.all.values()) {
      const holders = byGpu.get(one.gpu) ?? [];
      byGpu.set(one.gpu, holders);
      if (one.seen_ms >= from_ms && holders.length < MOST) {
        // Whoever has gone holds nothing any more.
        holders.push(one.seen_ms < now_ms ? { ...one, memory_bytes: 0 } : one);
      }
    }
    return byGpu;
  }

  /** Forgets those who have not been seen since. */
  prune(before_ms: number): void {
    for (const [key, { seen_ms }] of this.all) {
      if (seen_ms < before_ms) {
        this.all.delete(key);
      }
    }
  }
}
