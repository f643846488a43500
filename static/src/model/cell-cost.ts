/**
 * The cost of running a notebook's cell. It includes the kernel and all processes that the kernel
 * started. This module requests the cost from the server, and reads the cost that a notebook file
 * stores in `cell.metadata.gpumon`.
 */

import { plainText } from '../lib/text';
import type { Cell, CellRun, KernelCost, StoredCost } from '../wire';
import type { CellExecution } from './cell-log';
import type { MeasuredLimits } from './limits';
import { makeRequestInit, readJsonResponse, type Request } from './request';

export interface CellCost extends Omit<StoredCost, 'version' | 'gpus' | 'run'> {
  started_ms: number;
  ended_ms: number;
  /** The indexes of the GPUs that the kernel used. */
  gpus: readonly number[];
  /**
   * The causes that limited these GPUs. `null` if the run was shorter than a second, or if it is
   * from the server's history.
   */
  limits: MeasuredLimits | null;
}

/**
 * A run is worth showing if it lasts at least this long and uses at least `MIN_GPU_S` of GPU time,
 * or if its memory changes by at least `MIN_CHANGE_BYTES`.
 */
const MIN_DURATION_S = 0.5;
const MIN_GPU_S = 0.01;
const MIN_CHANGE_BYTES = 64 * 1024 ** 2;

/** The key under which a cell's metadata contain its stored cost. */
export const METADATA_KEY = 'gpumon';
/**
 * The metadata key for the times of a run. JupyterLab writes the times only if the user has enabled
 * this; nbclient always writes them.
 */
export const EXECUTION_KEY = 'execution';

/**
 * The limits of valid values in stored costs: a duration of about thirty years, eight pebibytes of
 * memory, and the energy that a large power station produces in a week.
 */
const MAX_STORED_DURATION_S = 1e9;
const MAX_STORED_BYTES = 2 ** 53;
const MAX_STORED_JOULES = 1e15;
const MAX_STORED_GPUS = 1024;
const MAX_STORED_NAME_LENGTH = 80;
const MAX_U32 = 2 ** 32 - 1;

/**
 * Returns whether a run used enough of a GPU to be worth showing. If the server started during the
 * run, or the kernel ended with the run, the change of memory is unknown. In this case, the peak is
 * used instead.
 */
export function isWorthShowing(cost: CellCost): boolean {
  const { duration_s, gpu_s, memory_change_bytes, peak_memory_bytes } = cost;
  const computed = duration_s >= MIN_DURATION_S && (gpu_s ?? Infinity) >= MIN_GPU_S;
  return computed || Math.abs(memory_change_bytes ?? peak_memory_bytes ?? 0) >= MIN_CHANGE_BYTES;
}

/**
 * Returns the cost of a cell, or `null` if the cell used no GPU. Its field `shared` states whether
 * other processes also used the GPUs.
 */
export function toCellCost({ cost }: KernelCost): CellCost | null {
  const { started_ms, ended_ms, duration_s, gpu_s, shared, gpus, energy_joules, limits } = cost;
  const { peak_memory_bytes, memory_change_bytes } = cost;
  return gpus.length === 0
    ? null
    : {
        started_ms,
        ended_ms,
        duration_s,
        gpu_s,
        peak_memory_bytes,
        memory_change_bytes,
        energy_joules: energy_joules?.most ?? null,
        shared,
        gpus: gpus.map(({ index }) => index),
        limits,
      };
}

/** Converts the cost of a cell from the server's history, whose API uses other names. */
export function costFromHistory(cell: Cell): CellCost {
  const { started_ms, ended_ms, gpus, gpu_ms, shared } = cell;
  return {
    started_ms,
    ended_ms,
    duration_s: (ended_ms - started_ms) / 1000,
    gpu_s: gpu_ms === null ? null : gpu_ms / 1000,
    peak_memory_bytes: cell.peak_bytes,
    memory_change_bytes: cell.change_bytes,
    energy_joules: cell.joules,
    shared,
    gpus,
    limits: null,
  };
}

/**
 * Sends the cost of a cell to the server, which sends it to all clients and keeps it in its
 * history. Fails silently if the server is too old or does not allow it.
 */
export async function sendCellCost(execution: CellExecution, request: Request): Promise<void> {
  const { notebook, kernelId, cellId, count, cost } = execution;
  const cell: Cell = {
    notebook,
    kernel_id: kernelId,
    cell_id: cellId,
    execution_count: count,
    started_ms: Math.round(cost.started_ms),
    ended_ms: Math.round(cost.ended_ms),
    gpus: [...cost.gpus],
    gpu_ms: cost.gpu_s === null ? null : cost.gpu_s * 1000,
    peak_bytes: cost.peak_memory_bytes,
    change_bytes: cost.memory_change_bytes,
    joules: cost.energy_joules,
    shared: cost.shared,
  };
  await request('api/v1/cells', makeRequestInit('POST', cell)).catch(() => null);
}

/**
 * Returns the cost of a kernel in a span, or until now if `to_ms` is `null`. For a finished span,
 * the server answers when the cost is final. Returns `null` if the server does not answer or is too
 * old.
 */
export async function requestCost(
  kernelId: string,
  from_ms: number,
  to_ms: number | null,
  request: Request,
): Promise<KernelCost | null> {
  const query = new URLSearchParams({ kernel_id: kernelId, from_ms: String(from_ms) });
  if (to_ms !== null) {
    query.set('to_ms', String(to_ms));
  }
  const { json } = await readJsonResponse(request(`api/v1/cost?${query.toString()}`));
  return json as KernelCost | null;
}

/**
 * Returns an identifier of a cell's last run, computed from the data in the cell. `execution` is
 * the value of `EXECUTION_KEY` in the cell's metadata. `tests/stored-cost-runs.json` has test cases
 * for comparing runs.
 */
export function makeCellRun(
  source: string,
  execution_count: number | null,
  execution: unknown,
): CellRun {
  const { 'iopub.execute_input': started } = Object(execution) as Record<string, unknown>;
  return {
    source_crc32: computeCrc32(source),
    execution_count,
    started: typeof started === 'string' ? started : null,
  };
}

/** Returns whether a stored cost belongs to the run `other`. */
export function belongsToRun({ run }: StoredCost, other: CellRun): boolean {
  return (
    run?.source_crc32 === other.source_crc32 &&
    run.execution_count === other.execution_count &&
    run.started === other.started
  );
}

/**
 * Parses the stored cost in a cell's metadata, which may come from any source. Returns `null` if
 * the metadata contain no cost in this version's format. Names are made displayable.
 */
export function readStoredCost(metadata: unknown): StoredCost | null {
  const { version, shared, gpus, run, ...numbers } = Object(metadata) as Record<
    keyof StoredCost,
    unknown
  >;
  const { duration_s, gpu_s, peak_memory_bytes, memory_change_bytes, energy_joules } = numbers;
  const isCost =
    version === 1 &&
    isNumberWithin(duration_s, MAX_STORED_DURATION_S) &&
    isNullOrNumberWithin(gpu_s, MAX_STORED_DURATION_S) &&
    isNullOrNumberWithin(peak_memory_bytes, MAX_STORED_BYTES) &&
    isNullOrNumberWithin(memory_change_bytes, MAX_STORED_BYTES, -MAX_STORED_BYTES) &&
    isNullOrNumberWithin(energy_joules, MAX_STORED_JOULES) &&
    typeof shared === 'boolean' &&
    Array.isArray(gpus) &&
    gpus.length <= MAX_STORED_GPUS &&
    gpus.every((name) => typeof name === 'string');
  return isCost
    ? {
        version,
        duration_s,
        gpu_s,
        peak_memory_bytes,
        memory_change_bytes,
        energy_joules,
        shared,
        gpus: gpus.map((name: string) => plainText(name, MAX_STORED_NAME_LENGTH)),
        run: parseCellRun(run),
      }
    : null;
}

/**
 * Returns the run to which a stored cost belongs, or `null` if its format is unknown, for example
 * because an older version stored it.
 */
function parseCellRun(value: unknown): CellRun | null {
  const { source_crc32, execution_count, started } = Object(value) as Record<
    keyof CellRun,
    unknown
  >;
  return isNumberWithin(source_crc32, MAX_U32) &&
    isNullOrNumberWithin(execution_count, MAX_U32) &&
    (started === null || typeof started === 'string')
    ? { source_crc32, execution_count, started }
    : null;
}

/**
 * Returns the CRC-32 of a text in UTF-8, like zlib. Browsers provide other hashes only to HTTPS
 * pages.
 */
function computeCrc32(text: string): number {
  let crc = MAX_U32;
  for (const byte of new TextEncoder().encode(text)) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) {
      crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
    }
  }
  return ~crc >>> 0;
}

function isNumberWithin(value: unknown, most: number, least = 0): value is number {
  return typeof value === 'number' && value >= least && value <= most;
}

function isNullOrNumberWithin(value: unknown, most: number, least = 0): value is number | null {
  return value === null || isNumberWithin(value, most, least);
}
