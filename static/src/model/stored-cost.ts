/** The costs that a notebook file stores in `cell.metadata.gpumon`. */

import { plainText } from '../lib/text';
import type { CellRun, StoredCost } from '../wire';

/** The key under which a cell's metadata contain its stored cost. */
export const METADATA_KEY = 'gpumon';
/**
 * The metadata key for the times of a run. JupyterLab writes the times if this is enabled; nbclient
 * always writes them.
 */
export const EXECUTION_KEY = 'execution';

/**
 * The maximum valid values of stored costs: about thirty years, eight pebibytes, and a week's
 * output of a large power station.
 */
const MAX_DURATION_S = 1e9;
const MAX_BYTES = 2 ** 53;
const MAX_JOULES = 1e15;
const MAX_GPUS = 1024;
const MAX_NAME_LENGTH = 80;
const MAX_U32 = 2 ** 32 - 1;

/**
 * Returns an identifier of a cell's last run, computed from the data in the cell. `execution` is
 * the value of `EXECUTION_KEY` in the cell's metadata. `tests/stored-cost-runs.json` has test cases
 * for comparing runs.
 */
export function runOf(source: string, execution_count: number | null, execution: unknown): CellRun {
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
    isWithin(duration_s, MAX_DURATION_S) &&
    isNullOrWithin(gpu_s, MAX_DURATION_S) &&
    isNullOrWithin(peak_memory_bytes, MAX_BYTES) &&
    isNullOrWithin(memory_change_bytes, MAX_BYTES, -MAX_BYTES) &&
    isNullOrWithin(energy_joules, MAX_JOULES) &&
    typeof shared === 'boolean' &&
    Array.isArray(gpus) &&
    gpus.length <= MAX_GPUS &&
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
        gpus: gpus.map((name: string) => plainText(name, MAX_NAME_LENGTH)),
        run: readRun(run),
      }
    : null;
}

/**
 * Returns the run that a cost was stored for, or `null` if the format is unknown, for example from
 * an older version.
 */
function readRun(value: unknown): CellRun | null {
  const { source_crc32, execution_count, started } = Object(value) as Record<
    keyof CellRun,
    unknown
  >;
  return isWithin(source_crc32, MAX_U32) &&
    isNullOrWithin(execution_count, MAX_U32) &&
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

function isWithin(value: unknown, most: number, least = 0): value is number {
  return typeof value === 'number' && value >= least && value <= most;
}

function isNullOrWithin(value: unknown, most: number, least = 0): value is number | null {
  return value === null || isWithin(value, most, least);
}
