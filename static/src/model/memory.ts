/** A GPU's memory: its use as parts of the total, and texts about the server's forecast. */

import { formatMemoryAmount, formatMemorySize, formatDuration } from '../lib/format';
import { joinParts } from '../lib/text';
import { trans } from '../lib/translation';
import type { GpuSample, Severity } from '../wire';
import type { Description } from './describe';
import { isUnified, type GpuState } from './gpu';
import { holderBytes, type HolderRow } from './holders';
import { valueOf } from './reading';

export interface Segment {
  key: string;
  /** The color: the slot of the holder, or a name if no holder uses this part of the memory. */
  paint: number | 'other' | 'system';
  label: string;
  /** The share of the total from 0 to 1. */
  share: number;
  bytes: number;
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
 * Returns how many bytes of unified memory the rest of the system uses, or `null` if this is
 * unknown. The driver of AMD's APUs counts only the memory that the GPU uses.
 */
export function restOfSystemBytes(
  gpu: GpuSample,
  used = valueOf(gpu.memory.used_bytes),
): number | null {
  const taken = isUnified(gpu) ? unavailableBytes(gpu) : null;
  return taken === null || used === null || taken <= used ? null : taken - used;
}

/** Returns the label for programs that use unified memory without the GPU. */
export function restOfSystemLabel(): string {
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
  add('system', 'system', restOfSystemLabel(), restOfSystemBytes(gpu, used) ?? 0);
  return segments;
}

/** Returns how much memory the driver reserves, or an empty text for unified memory. */
export function describeReservedMemory(gpu: GpuSample | null): string {
  const reserved = gpu === null || isUnified(gpu) ? null : valueOf(gpu.memory.reserved_bytes);
  return reserved === null || reserved === 0
    ? ''
    : trans.__('%1 reserved by the driver', formatMemoryAmount(reserved));
}

export function describeMemorySegments(segments: readonly Segment[]): string {
  return segments
    .map((segment) => `${segment.label} ${formatMemorySize(segment.bytes)}`)
    .join(', ');
}

/** Returns how much unified memory is available, or an empty text for dedicated memory. */
export function describeAvailableUnifiedMemory(gpu: GpuSample | null): string {
  const available = isUnified(gpu) ? valueOf(gpu.memory.free_bytes) : null;
  return available === null ? '' : trans.__('%1 available', formatMemorySize(available));
}

/** Explains unified memory and its users, or returns an empty text for dedicated memory. */
export function describeUnifiedMemory(gpu: GpuSample | null): string {
  if (!isUnified(gpu)) {
    return '';
  }
  const used = valueOf(gpu.memory.used_bytes);
  const system = restOfSystemBytes(gpu);
  const parts = [
    used === null ? null : trans.__('%1 used by the GPU', formatMemorySize(used)),
    system === null ? null : trans.__('%1 by the rest of the system', formatMemorySize(system)),
    describeAvailableUnifiedMemory(gpu),
  ];
  return joinParts([trans.__('Unified memory, shared with the CPU'), joinParts(parts, ', ')], ': ');
}

/** Returns advice for when unified memory runs out, or an empty list for dedicated memory. */
export function unifiedMemoryAdvice(gpu: GpuSample | null): string[] {
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

/** A holder is named only if it causes at least this share of the total growth. */
const MIN_NAMED_SHARE = 0.2;
const MAX_NAMED = 2;
/**
 * If the memory will be full within this time, it is shown as already full, because it would be
 * full before the user has read a forecast.
 */
const MAX_FULL_MS = 5000;

export interface Grower {
  row: HolderRow;
  bytes_per_second: number;
}

export interface Forecast {
  left_ms: number;
  bytes_per_second: number;
  severity: Severity;
  /** The holders whose memory grows, the fastest first. */
  growers: Grower[];
}

/**
 * Returns the forecast of a GPU's memory, or `null` if it will not be full within `horizon_ms`.
 * `rows` are the holders.
 */
export function forecastOf(
  gpu: GpuState,
  rows: readonly HolderRow[],
  horizon_ms: number,
): Forecast | null {
  for (const condition of gpu.now?.conditions ?? []) {
    if (condition.condition === 'memory_filling' && condition.left_ms <= horizon_ms) {
      const { left_ms, bytes_per_second, severity, growing } = condition;
      const rates = new Map(growing.map((process) => [process.pid, process.bytes_per_second]));
      const growers = rows
        .filter((row) => row.gpu === gpu.index)
        .map((row) => ({
          row,
          bytes_per_second: row.processes.reduce((sum, { pid }) => sum + (rates.get(pid) ?? 0), 0),
        }))
        .filter((grower) => grower.bytes_per_second > 0)
        .sort((a, b) => b.bytes_per_second - a.bytes_per_second);
      return { left_ms, bytes_per_second, severity, growers };
    }
  }
  return null;
}

export function describeForecast(
  { left_ms, bytes_per_second, severity, growers }: Forecast,
  nameOf: (row: HolderRow) => string = (row) => row.name,
): Description {
  const named = growers.map(({ row, ...growth }) => ({ name: nameOf(row), ...growth }));
  return {
    text: describeFilling(left_ms, bytes_per_second, named),
    title: trans.__('Estimated from the growth over the last 30 s.'),
    level: severity === 'critical' ? 'critical' : 'warning',
  };
}

/**
 * Returns when the memory will be full, and the holders that cause most of the growth. `growers`
 * are sorted by growth, the fastest first.
 */
export function describeFilling(
  left_ms: number,
  bytes_per_second: number,
  growers: readonly { name: string; bytes_per_second: number }[],
): string {
  const named = growers
    .filter((one) => one.bytes_per_second >= MIN_NAMED_SHARE * bytes_per_second)
    .slice(0, MAX_NAMED);
  const [first, ...others] = named;
  const more = others.map((one) => `, ${one.name} ${formatRate(one.bytes_per_second)}`).join('');
  const speed = `${formatRate(first?.bytes_per_second ?? bytes_per_second)}${more}`;
  if (left_ms < MAX_FULL_MS) {
    return first === undefined
      ? trans.__('Memory full: grew %1', speed)
      : trans.__('Memory full: %1 grew %2', first.name, speed);
  }
  const left = formatRoughDuration(left_ms);
  return first === undefined
    ? trans.__('Memory full in about %1: grows %2', left, speed)
    : trans.__('Memory full in about %1: %2 grows %3', left, first.name, speed);
}

/** Returns the remaining time until the memory is full as a short text. */
export function summarizeFilling(left_ms: number): string {
  return left_ms < MAX_FULL_MS
    ? trans.__('memory full')
    : trans.__('full in %1', formatRoughDuration(left_ms));
}

function formatRate(bytes_per_second: number): string {
  return `${formatMemorySize(bytes_per_second)}/s`;
}

/** Rounds a forecast, which is not precise, to tens of seconds or minutes. */
function formatRoughDuration(ms: number): string {
  return formatDuration(
    ms < 60_000 ? Math.ceil(ms / 10_000) * 10_000 : Math.round(ms / 60_000) * 60_000,
  );
}
