/**
 * The explanation of an out-of-memory error: how much memory was requested, how much was free, and
 * which holders used the rest.
 */

import { DASH, formatMemoryAmount, formatTimeOfDay } from '../lib/format';
import { joinSentences } from '../lib/text';
import { trans } from '../lib/translation';
import type { GpuSample, Inventory, Sample } from '../wire';
import { gpusOf, isUnified, type GpuState } from './gpu';
import {
  holderBytes,
  holderName,
  notebookKernelId,
  holderRows,
  textOf,
  type HolderRow,
  type PathOf,
} from './holders';
import { ColorSlots } from './color-slots';
import { computeKernelShare } from './notebooks';
import {
  describeUnifiedMemory,
  restOfSystemBytes,
  restOfSystemLabel,
  unifiedMemoryAdvice,
} from './memory';
import type { OomError } from './oom-error';
import { valueOf } from './reading';

export interface OomDescription {
  text: string;
  /** The hover text, which names the sources of the numbers. */
  title: string;
  /** The holders, largest first. The list is empty if the GPU is unknown. */
  holders: readonly OomHolder[];
  /** Further explanations of the error. */
  notes: readonly string[];
}

export interface OomHolder {
  key: string;
  /** The name and the memory of the holder. */
  text: string;
  title: string;
  /**
   * The ID of the kernel if the holder is a notebook on this Jupyter server, and otherwise `null`.
   * Users can act only on holders that have this ID.
   */
  kernelId: string | null;
}

/** The state that was known at about the time of the failure. */
export interface OomSnapshot {
  inventory: Inventory | null;
  sample: Sample | null;
  kernelId: string;
  pathOf: PathOf;
}

/** The maximum number of named holders. The others are summed up. */
const MAX_NAMED_HOLDERS = 4;
/** The frameworks that reserve memory at startup and allocate from it. */
const POOLING_FRAMEWORKS = ['JAX', 'TensorFlow'];

/** Explains an error. Returns `null` if the error may be about host memory. */
export function describeOom(error: OomError, snapshot: OomSnapshot): OomDescription | null {
  const { sample, kernelId } = snapshot;
  const held = sample === null ? [] : computeKernelShare(sample, kernelId).gpus;
  if (!error.says_gpu && held.length === 0) {
    return null;
  }
  const gpu = findFullGpu(error, held, snapshot);
  const now = gpu?.now ?? null;
  const memory = now?.memory;
  const isInMessage = error.free_bytes !== null && error.total_bytes !== null;
  const free = isInMessage || memory === undefined ? error.free_bytes : valueOf(memory.free_bytes);
  const total =
    isInMessage || memory === undefined ? error.total_bytes : valueOf(memory.total_bytes);
  const left =
    free === null || total === null ? null : [formatMemoryAmount(free), formatMemoryAmount(total)];
  const at = sample === null ? '' : formatTimeOfDay(sample.at_ms);
  const sources = [
    isInMessage
      ? trans.__('Free memory: from the error message.')
      : isUnified(now)
        ? trans.__('Free memory: available system memory at %1.', at)
        : trans.__('Free memory: from the driver at %1.', at),
    ...(gpu === null ? [] : [trans.__('Processes: from the driver at %1.', at)]),
  ];
  return {
    text: describeFailure(error, left, gpu?.index ?? null),
    title: left === null ? '' : sources.join('\n'),
    holders: gpu === null ? [] : holdersOf(gpu, snapshot),
    notes: [...listErrorNotes(error), ...unifiedMemoryNotes(error, now)],
  };
}

/**
 * Returns a sentence with the requested memory, the free and total memory in `left`, and the GPU's
 * index on this machine.
 */
function describeFailure(
  error: OomError,
  left: readonly string[] | null,
  gpu: number | null,
): string {
  const { framework, asked_bytes } = error;
  const isRequestKnown = asked_bytes !== null;
  // A text uses the first values as `%1`, `%2` and so on, and ignores the remaining ones.
  const values = [
    framework,
    ...(isRequestKnown ? [formatMemoryAmount(asked_bytes)] : []),
    ...(left ?? []),
    gpu ?? error.gpu,
  ];
  if (left === null) {
    return isRequestKnown
      ? trans.__('%1 requested %2 of GPU memory.', ...values)
      : trans.__('%1 ran out of GPU memory.', ...values);
  }
  if (gpu !== null) {
    return isRequestKnown
      ? trans.__('%1 requested %2 of GPU memory with %3 of %4 free on GPU %5.', ...values)
      : trans.__('%1 ran out of GPU memory with %2 of %3 free on GPU %4.', ...values);
  }
  if (error.gpu !== null) {
    return isRequestKnown
      ? trans.__('%1 requested %2 of GPU memory with %3 of %4 free on its GPU %5.', ...values)
      : trans.__('%1 ran out of GPU memory with %2 of %3 free on its GPU %4.', ...values);
  }
  return isRequestKnown
    ? trans.__('%1 requested %2 of GPU memory with %3 of %4 free.', ...values)
    : trans.__('%1 ran out of GPU memory with %2 of %3 free.', ...values);
}

/**
 * Returns the sample in which the kernel uses more memory. A kernel may free its memory immediately
 * after a failure, so the sample with more memory shows the state at the failure more accurately.
 */
export function selectSampleWithMoreMemory(
  before: Sample | null,
  after: Sample,
  kernelId: string,
): Sample {
  const bytes = (sample: Sample): number => computeKernelShare(sample, kernelId).bytes ?? 0;
  return before !== null && bytes(before) > bytes(after) ? before : after;
}

/**
 * Returns the GPU that was full. Returns `null` if several GPUs may have been full, or if the GPU
 * is divided into MIG devices. The GPU index in the error is not used, because a kernel numbers
 * only the GPUs that it can see.
 */
function findFullGpu(
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
  return gpu === undefined || others.length > 0 || hasMigDevices(gpu) ? null : gpu;
}

function hasMigDevices({ now }: GpuState): boolean {
  return now !== null && (valueOf(now.mig_devices) ?? []).length > 0;
}

function holdersOf(gpu: GpuState, { kernelId, pathOf }: OomSnapshot): OomHolder[] {
  const rows = holderRows([gpu], new ColorSlots(), pathOf).filter((row) => row.kind === 'holder');
  const named = rows.slice(0, MAX_NAMED_HOLDERS).map((row) => makeOomHolder(row, kernelId));
  const rest = rows.slice(MAX_NAMED_HOLDERS);
  if (rest.length > 0) {
    const bytes = rest.reduce((sum, row) => sum + holderBytes(row), 0);
    const title = rest.map((row) => holderName(row)).join('\n');
    named.push({
      key: 'rest',
      text: trans._n('%1 more %2', '%1 more %2', rest.length, formatMemoryAmount(bytes)),
      title,
      kernelId: null,
    });
  }
  const system = gpu.now === null ? null : restOfSystemBytes(gpu.now);
  if (system !== null) {
    named.push({
      key: 'system',
      text: `${restOfSystemLabel()} ${formatMemoryAmount(system)}`,
      title: trans.__('Programs on the CPU, which shares its memory with this GPU'),
      kernelId: null,
    });
  }
  return named;
}

function makeOomHolder(row: HolderRow, failed: string): OomHolder {
  const { command, pid } = row.processes[0];
  const name = row.notebook?.kernel_id === failed ? trans.__('this notebook') : holderName(row);
  const bytes = valueOf(row.memory_bytes);
  return {
    key: row.key,
    text: `${name} ${bytes === null ? DASH : formatMemoryAmount(bytes)}`,
    title: trans.__('%1 (PID %2)', textOf(command).text, pid),
    kernelId: notebookKernelId(row),
  };
}

/** Returns notes about memory that the GPU shares with the CPU. */
function unifiedMemoryNotes({ framework }: OomError, now: GpuSample | null): string[] {
  return isUnified(now)
    ? [
        joinSentences([describeUnifiedMemory(now)]),
        trans.__(
          '%1 may get less than the available memory, because the system does not free all caches for it.',
          framework,
        ),
        ...unifiedMemoryAdvice(now),
      ]
    : [];
}

function listErrorNotes({ framework, unused_bytes, limit_bytes, asked_bytes }: OomError): string[] {
  const notes: string[] = [];
  if (limit_bytes !== null) {
    notes.push(
      trans.__('%1 is limited to %2 in this process.', framework, formatMemoryAmount(limit_bytes)),
    );
  }
  if (unused_bytes !== null && unused_bytes >= (asked_bytes ?? Infinity)) {
    notes.push(
      trans.__(
        '%1 reserves %2 that it does not use: too fragmented for this request, and not available to other processes.',
        framework,
        formatMemoryAmount(unused_bytes),
      ),
    );
  }
  if (POOLING_FRAMEWORKS.includes(framework)) {
    notes.push(
      trans.__(
        '%1 reserves GPU memory at startup and allocates from it, not from the free memory.',
        framework,
      ),
    );
  }
  return notes;
}
