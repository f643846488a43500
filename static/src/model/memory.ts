/** The use of a GPU's memory, as parts of the total. */

import { formatMemoryAmount, formatMemorySize } from '../lib/format';
import { joinParts } from '../lib/text';
import { trans } from '../lib/translation';
import type { GpuSample } from '../wire';
import { holderBytes } from './holder-name';
import type { HolderRow } from './holders';
import { valueOf } from './reading';

export interface Segment {
  key: string;
  /** The color: the slot of a holder, or a name for memory that belongs to no holder. */
  paint: number | 'other' | 'system';
  label: string;
  /** The share of the total from 0 to 1. */
  share: number;
  bytes: number;
}

/** A sample of a GPU that shares the machine's memory. */
type UnifiedSample = GpuSample & { memory_kind: 'unified' };

export function isUnified(gpu: GpuSample | null | undefined): gpu is UnifiedSample {
  return gpu?.memory_kind === 'unified';
}

/**
 * Returns the unavailable memory in bytes, or `null` if it is unknown. For unified memory, the
 * result includes the memory that the rest of the system uses.
 */
export function unavailableBytes(gpu: GpuSample): number | null {
  const { total_bytes, used_bytes, free_bytes } = gpu.memory;
  if (!isUnified(gpu)) {
    return valueOf(used_bytes);
  }
  const total = valueOf(total_bytes);
  const available = valueOf(free_bytes);
  return total === null || available === null ? null : total - available;
}

/**
 * Returns the unified memory in bytes that the rest of the system uses, or `null` if it is unknown.
 * The driver of AMD's APUs only counts the GPU's own part.
 */
export function systemBytes(gpu: GpuSample, used = valueOf(gpu.memory.used_bytes)): number | null {
  const taken = isUnified(gpu) ? unavailableBytes(gpu) : null;
  return taken === null || used === null || taken <= used ? null : taken - used;
}

/** Returns the label for programs that use unified memory without the GPU. */
export function systemName(): string {
  return trans.__('rest of the system');
}

/**
 * Returns the parts of the memory bar from left to right, or an empty list if the total or the use
 * is unknown.
 */
export function memorySegments(gpu: GpuSample, rows: readonly HolderRow[]): Segment[] {
  const { memory } = gpu;
  const total = valueOf(memory.total_bytes);
  const held = rows.reduce((sum, row) => sum + holderBytes(row), 0);
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
    // The driver reads the processes and the total at slightly different times, so the sum of the
    // processes may be too large.
    const bytes = Math.min(holderBytes(row), left);
    add(row.key, row.slot, row.name, bytes);
    left -= bytes;
  }
  add('other', 'other', trans.__('not attributed to a process'), left);
  add('system', 'system', systemName(), systemBytes(gpu, used) ?? 0);
  return segments;
}

/** Returns how much memory the driver reserves, or an empty text for unified memory. */
export function describeReserved(gpu: GpuSample | null): string {
  const reserved = gpu === null || isUnified(gpu) ? null : valueOf(gpu.memory.reserved_bytes);
  return reserved === null || reserved === 0
    ? ''
    : trans.__('%1 reserved by the driver', formatMemoryAmount(reserved));
}

export function memorySentence(segments: readonly Segment[]): string {
  return segments
    .map((segment) => `${segment.label} ${formatMemorySize(segment.bytes)}`)
    .join(', ');
}

/** Returns how much unified memory is available, or an empty text for dedicated memory. */
export function describeAvailable(gpu: GpuSample | null): string {
  const available = isUnified(gpu) ? valueOf(gpu.memory.free_bytes) : null;
  return available === null ? '' : trans.__('%1 available', formatMemorySize(available));
}

/** Explains unified memory and its users, or returns an empty text for dedicated memory. */
export function describeUnified(gpu: GpuSample | null): string {
  if (!isUnified(gpu)) {
    return '';
  }
  const used = valueOf(gpu.memory.used_bytes);
  const system = systemBytes(gpu);
  const parts = [
    used === null ? null : trans.__('%1 used by the GPU', formatMemorySize(used)),
    system === null ? null : trans.__('%1 by the rest of the system', formatMemorySize(system)),
    describeAvailable(gpu),
  ];
  return joinParts([trans.__('Unified memory, shared with the CPU'), joinParts(parts, ', ')], ': ');
}

/** Returns advice for when unified memory runs out, or an empty list for dedicated memory. */
export function unifiedAdvice(gpu: GpuSample | null): string[] {
  return isUnified(gpu)
    ? [
        trans.__(
          'The CPU uses the same memory: close other programs, and check host memory and swap.',
        ),
        trans.__(
          'If no memory is left, the system may end a process, such as a kernel, without an error.',
        ),
      ]
    : [];
}
