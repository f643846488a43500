/** Who holds a GPU's memory, as parts of its total. */

import { memoryAmount, memorySize } from '../lib/format';
import { joined } from '../lib/text';
import { trans } from '../lib/translation';
import type { GpuSample } from '../wire';
import { heldBytes } from './holder-name';
import type { HolderRow } from './holders';
import { valueOf } from './reading';

export interface Segment {
  key: string;
  /** Which color: a holder's slot, or that of memory which no holder has. */
  paint: number | 'other' | 'system';
  label: string;
  /** Share of the total, 0 to 1. */
  share: number;
  bytes: number;
}

/** A sample of a GPU that has no memory of its own, but that of the machine. */
type UnifiedSample = GpuSample & { memory_kind: 'unified' };

export function isUnified(gpu: GpuSample | null | undefined): gpu is UnifiedSample {
  return gpu?.memory_kind === 'unified';
}

/**
 * Returns the memory that is not available, in bytes; `null` if it is not known. The rest of the
 * system also uses unified memory.
 */
export function takenBytes(gpu: GpuSample): number | null {
  const { total_bytes, used_bytes, free_bytes } = gpu.memory;
  if (!isUnified(gpu)) {
    return valueOf(used_bytes);
  }
  const total = valueOf(total_bytes);
  const available = valueOf(free_bytes);
  return total === null || available === null ? null : total - available;
}

/**
 * Returns the unified memory that the rest of the system uses, in bytes; `null` if it is not known.
 * The driver of AMD's APUs only counts the GPU's own part.
 */
export function bytesOfSystem(
  gpu: GpuSample,
  used = valueOf(gpu.memory.used_bytes),
): number | null {
  const taken = isUnified(gpu) ? takenBytes(gpu) : null;
  return taken === null || used === null || taken <= used ? null : taken - used;
}

/** Returns the name of the programs that use unified memory without the GPU. */
export function systemName(): string {
  return trans.__('rest of the system');
}

/** The parts of the bar from left to right; empty where total or use is not known. */
export function memorySegments(gpu: GpuSample, rows: readonly HolderRow[]): Segment[] {
  const { memory } = gpu;
  const total = valueOf(memory.total_bytes);
  const held = rows.reduce((sum, row) => sum + heldBytes(row), 0);
  const used = valueOf(memory.used_bytes) ?? (isUnified(gpu) ? held : null);
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
    // The driver reads processes and the total one after the other, so their sum may be a little
    // too large.
    const bytes = Math.min(heldBytes(row), left);
    add(row.key, row.slot, row.name, bytes);
    left -= bytes;
  }
  add('other', 'other', trans.__('not attributed to a process'), left);
  add('system', 'system', systemName(), bytesOfSystem(gpu, used) ?? 0);
  return segments;
}

/** Returns how much memory the driver reserves; empty for unified memory. */
export function describeReserved(gpu: GpuSample | null): string {
  const reserved = gpu === null || isUnified(gpu) ? null : valueOf(gpu.memory.reserved_bytes);
  return reserved === null || reserved === 0
    ? ''
    : trans.__('%1 reserved by the driver', memoryAmount(reserved));
}

export function memorySentence(segments: readonly Segment[]): string {
  return segments.map((segment) => `${segment.label} ${memorySize(segment.bytes)}`).join(', ');
}

/** Returns how much of a GPU's unified memory is available; empty for device memory. */
export function describeAvailable(gpu: GpuSample | null): string {
  const available = isUnified(gpu) ? valueOf(gpu.memory.free_bytes) : null;
  return available === null ? '' : trans.__('%1 available', memorySize(available));
}

/** Returns what unified memory is, and who uses how much of it; empty for device memory. */
export function describeUnified(gpu: GpuSample | null): string {
  if (!isUnified(gpu)) {
    return '';
  }
  const used = valueOf(gpu.memory.used_bytes);
  const system = bytesOfSystem(gpu);
  const parts = [
    used === null ? null : trans.__('%1 used by the GPU', memorySize(used)),
    system === null ? null : trans.__('%1 by the rest of the system', memorySize(system)),
    describeAvailable(gpu),
  ];
  return joined([trans.__('Unified memory, shared with the CPU'), joined(parts, ', ')], ': ');
}

/** Returns what to do when unified memory runs out, in sentences; empty for device memory. */
export function unifiedAdvice(gpu: GpuSample | null): string[] {
  return isUnified(gpu)
    ? [
        trans.__(
          'The CPU uses the same memory: close other programs, and check host memory and swap.',
        ),
        trans.__(
          'If none is left, the system may end a process, such as a kernel, without an error.',
        ),
      ]
    : [];
}
