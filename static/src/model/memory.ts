/** Who holds a GPU's memory, as parts of its total. */

import { memorySize } from '../lib/format';
import { trans } from '../lib/translation';
import type { MemorySample } from '../wire';
import type { HolderRow } from './holders';
import { valueOf } from './reading';

export interface Segment {
  key: string;
  /** Which color: a holder's slot, memory in use that no process accounts for, or what the driver keeps. */
  paint: number | 'other' | 'reserved';
  label: string;
  /** Share of the total, 0 to 1. */
  share: number;
  bytes: number;
}

/** The parts of the bar from left to right; empty where total or use is not known. */
export function memorySegments(memory: MemorySample, rows: readonly HolderRow[]): Segment[] {
  const total = valueOf(memory.total_bytes);
  const used = valueOf(memory.used_bytes);
  if (total === null || used === null || total <= 0) {
    return [];
  }
  const segments: Segment[] = [];
  let left = Math.min(used, total);
  const add = (key: string, paint: Segment['paint'], label: string, bytes: number): void => {
    if (bytes > 0) {
      segments.push({ key, paint, label, share: bytes / total, bytes });
    }
  };
  for (const row of rows) {
    // The driver reads processes and the total one after the other, so their sum may be a little too large.
    const bytes = Math.min(valueOf(row.memory_bytes) ?? 0, left);
    add(row.key, row.slot, row.name, bytes);
    left -= bytes;
  }
  add('other', 'other', trans.__('not attributed to a process'), left);
  const reserved = valueOf(memory.reserved_bytes) ?? 0;
  add(
    'reserved',
    'reserved',
    trans.__('reserved by the driver'),
    Math.min(reserved, Math.max(0, total - used)),
  );
  return segments;
}

export function memorySentence(segments: readonly Segment[]): string {
  return segments.map((segment) => `${segment.label} ${memorySize(segment.bytes)}`).join(', ');
}
