/** Explains an out-of-memory error: what was requested, what was free, and who held the rest. */

import { DASH, memoryAmount, timeOfDay } from '../lib/format';
import { sentences } from '../lib/text';
import { trans } from '../lib/translation';
import type { GpuSample, Inventory, Sample } from '../wire';
import { gpusOf, type GpuState } from './gpu';
import { heldBytes, holderName, ownKernel } from './holder-name';
import { ColorSlots } from './color-slots';
import { holderRows, textOf, type HolderRow, type PathOf } from './holders';
import { shareOf } from './kernel-share';
import { describeUnified, isUnified, bytesOfSystem, systemName, unifiedAdvice } from './memory';
import type { OomError } from './oom-error';
import { valueOf } from './reading';

export interface OomDescription {
  text: string;
  /** Where the numbers are from. */
  title: string;
  /** The largest holders first; empty where it is not known which GPU it was. */
  holders: readonly OomHolder[];
  /** What else explains it. */
  notes: readonly string[];
}

export interface OomHolder {
  key: string;
  /** With what it holds. */
  text: string;
  title: string;
  /** Where it is a notebook of this place, with which something can be done. */
  kernelId: string | null;
}

/** What was known around the failure. */
export interface OomSnapshot {
  inventory: Inventory | null;
  sample: Sample | null;
  kernelId: string;
  pathOf: PathOf;
}

/** More than so many are summed up. */
const NAMED_MOST = 4;
/** These take memory when they start, and serve requests out of it. */
const POOLED = ['JAX', 'TensorFlow'];

/** The explanation; `null` where the error may be about host memory. */
export function describeOom(error: OomError, snapshot: OomSnapshot): OomDescription | null {
  const { sample, kernelId } = snapshot;
  const held = sample === null ? [] : shareOf(sample, kernelId).gpus;
  if (!error.says_gpu && held.length === 0) {
    return null;
  }
  const gpu = gpuOf(error, held, snapshot);
  const now = gpu?.now ?? null;
  const memory = now?.memory;
  const isInMessage = error.free_bytes !== null && error.total_bytes !== null;
  const free = isInMessage || memory === undefined ? error.free_bytes : valueOf(memory.free_bytes);
  const total =
    isInMessage || memory === undefined ? error.total_bytes : valueOf(memory.total_bytes);
  const left = free === null || total === null ? null : [memoryAmount(free), memoryAmount(total)];
  const at = sample === null ? '' : timeOfDay(sample.at_ms);
  const sources = [
    isInMessage
      ? trans.__('Free memory: from the error message.')
      : isUnified(now)
        ? trans.__('Free memory: what the system had available at %1.', at)
        : trans.__('Free memory: from the driver at %1.', at),
    ...(gpu === null ? [] : [trans.__('Processes: from the driver at %1.', at)]),
  ];
  return {
    text: sentence(error, left, gpu?.index ?? null),
    title: left === null ? '' : sources.join('\n'),
    holders: gpu === null ? [] : holdersOf(gpu, snapshot),
    notes: [...notesOf(error), ...unifiedNotes(error, now)],
  };
}

/** What was asked, what of what was free, and where; `gpu` is as the machine counts. */
function sentence(error: OomError, left: readonly string[] | null, gpu: number | null): string {
  const { framework, asked_bytes } = error;
  if (asked_bytes === null) {
    if (left === null) {
      return trans.__('%1 ran out of GPU memory.', framework);
    }
    if (gpu !== null) {
      return trans.__(
        '%1 ran out of GPU memory with %2 of %3 free on GPU %4.',
        framework,
        ...left,
        gpu,
      );
    }
    return error.gpu === null
      ? trans.__('%1 ran out of GPU memory with %2 of %3 free.', framework, ...left)
      : trans.__(
          '%1 ran out of GPU memory with %2 of %3 free on its GPU %4.',
          framework,
          ...left,
          error.gpu,
        );
  }
  const requested = memoryAmount(asked_bytes);
  if (left === null) {
    return trans.__('%1 requested %2 of GPU memory.', framework, requested);
  }
  if (gpu !== null) {
    return trans.__(
      '%1 requested %2 of GPU memory with %3 of %4 free on GPU %5.',
      framework,
      requested,
      ...left,
      gpu,
    );
  }
  return error.gpu === null
    ? trans.__('%1 requested %2 of GPU memory with %3 of %4 free.', framework, requested, ...left)
    : trans.__(
        '%1 requested %2 of GPU memory with %3 of %4 free on its GPU %5.',
        framework,
        requested,
        ...left,
        error.gpu,
      );
}

/**
 * Of two samples the one nearer to the failure: a kernel that has failed may give memory back at
 * once.
 */
export function fullerSample(before: Sample | null, after: Sample, kernelId: string): Sample {
  const bytes = (sample: Sample): number => shareOf(sample, kernelId).bytes ?? 0;
  return before !== null && bytes(before) > bytes(after) ? before : after;
}

/**
 * The GPU that was full; `null` where there may be several. The number that an error tells is no
 * help, since a kernel counts only the GPUs that it may see. Of one that is divided, others' parts
 * explain nothing.
 */
function gpuOf(
  error: OomError,
  held: readonly number[],
  { inventory, sample }: OomSnapshot,
): GpuState | null {
  const all = gpusOf(inventory, sample);
  const possible = held.length === 0 ? all : all.filter(({ index }) => held.includes(index));
  const short = possible.filter(({ now }) => {
    const free = valueOf(now?.memory.free_bytes);
    return free !== null && error.asked_bytes !== null && free < error.asked_bytes;
  });
  const [gpu, ...others] = possible.length > 1 && short.length > 0 ? short : possible;
  return gpu === undefined || others.length > 0 || isDivided(gpu) ? null : gpu;
}

function isDivided({ now }: GpuState): boolean {
  return now !== null && (valueOf(now.mig_devices) ?? []).length > 0;
}

function holdersOf(gpu: GpuState, { kernelId, pathOf }: OomSnapshot): OomHolder[] {
  const rows = holderRows([gpu], new ColorSlots(), pathOf).filter((row) => row.kind === 'holder');
  const named = rows.slice(0, NAMED_MOST).map((row) => holderOf(row, kernelId));
  const rest = rows.slice(NAMED_MOST);
  if (rest.length > 0) {
    const bytes = rest.reduce((sum, row) => sum + heldBytes(row), 0);
    const title = rest.map((row) => holderName(row)).join('\n');
    named.push({
      key: 'rest',
      text: trans._n('%1 more %2', '%1 more %2', rest.length, memoryAmount(bytes)),
      title,
      kernelId: null,
    });
  }
  const system = gpu.now === null ? null : bytesOfSystem(gpu.now);
  if (system !== null) {
    named.push({
      key: 'system',
      text: `${systemName()} ${memoryAmount(system)}`,
      title: trans.__('Programs of the CPU, which share the memory with this GPU'),
      kernelId: null,
    });
  }
  return named;
}

function holderOf(row: HolderRow, failed: string): OomHolder {
  const { command, pid } = row.processes[0];
  const name = row.notebook?.kernel_id === failed ? trans.__('this notebook') : holderName(row);
  const bytes = valueOf(row.memory_bytes);
  return {
    key: row.key,
    text: `${name} ${bytes === null ? DASH : memoryAmount(bytes)}`,
    title: trans.__('%1 (PID %2)', textOf(command).text, pid),
    kernelId: ownKernel(row),
  };
}

/** Returns the notes on memory that is not the GPU's own. */
function unifiedNotes({ framework }: OomError, now: GpuSample | null): string[] {
  return isUnified(now)
    ? [
        sentences([describeUnified(now)]),
        trans.__(
          '%1 may get less than this, because the system does not free all caches for it.',
          framework,
        ),
        ...unifiedAdvice(now),
      ]
    : [];
}

function notesOf({ framework, unused_bytes, limit_bytes, asked_bytes }: OomError): string[] {
  const notes: string[] = [];
  if (limit_bytes !== null) {
    notes.push(
      trans.__('%1 is limited to %2 in this process.', framework, memoryAmount(limit_bytes)),
    );
  }
  if (unused_bytes !== null && unused_bytes >= (asked_bytes ?? Infinity)) {
    notes.push(
      trans.__(
        '%1 reserves %2 that it does not use: too fragmented for this request, and not available to other processes.',
        framework,
        memoryAmount(unused_bytes),
      ),
    );
  }
  if (POOLED.includes(framework)) {
    notes.push(
      trans.__(
        '%1 reserves GPU memory at startup and allocates from it, not from the free memory.',
        framework,
      ),
    );
  }
  return notes;
}
