/** The distinct names of notebooks, and the GPU use of their kernels. */

import type { GpuSample, Process, Sample } from '../wire';
import { valueOf } from './reading';

/**
 * Matches the last part of a console's session path in two forms: the form that JupyterLab
 * requests, and the form to which Jupyter renames it.
 */
const CONSOLE = /^(?:console-(\d+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|Console (\d+))$/;

/** Returns whether a session's path belongs to a console, whose kernel has no notebook. */
export function isConsolePath(path: string): boolean {
  return CONSOLE.test(path.split('/').at(-1) ?? '');
}

/**
 * Returns a distinct name for each path: the shortest end of the path that is not also the end of
 * another path. The terminal has the same rule, and `tests/notebook-names.json` contains test cases
 * for both implementations.
 */
export function notebookNames(paths: Iterable<string>): Map<string, string> {
  const distinct = new Map([...new Set(paths)].map((path) => [path, listPathEnds(path)]));
  const counts = new Map<string, number>();
  for (const end of [...distinct.values()].flat()) {
    counts.set(end, (counts.get(end) ?? 0) + 1);
  }
  return new Map(
    [...distinct].map(([path, ends]) => [path, ends.find((end) => counts.get(end) === 1) ?? path]),
  );
}

/**
 * Returns the ends of a path that can serve as its name, from the shortest end to the whole path.
 */
function listPathEnds(path: string): string[] {
  const shown = formatPath(path);
  const parts = shown.split('/').filter((part) => part !== '');
  const ends = parts.map((_, index) => parts.slice(parts.length - 1 - index).join('/'));
  return [...ends, ...(ends.at(-1) === shown ? [] : [shown])];
}

/** Returns the whole path, with the console's name as in JupyterLab. */
function formatPath(path: string): string {
  const parts = path.split('/');
  const [, asked, made] = CONSOLE.exec(parts.at(-1) ?? '') ?? [];
  const number = asked ?? made;
  return number === undefined ? path : [...parts.slice(0, -1), `Console ${number}`].join('/');
}

/** The use of all GPUs by a kernel and all processes that it started. */
export interface KernelShare {
  gpus: readonly number[];
  bytes: number | null;
  /** The GPU time in percent. Each GPU contributes up to 100, so the sum may exceed 100. */
  sm_percent: number | null;
}

export function computeKernelShare(sample: Sample, kernelId: string): KernelShare {
  const gpus: number[] = [];
  let bytes: number | null = null;
  let sm_percent: number | null = null;
  for (const gpu of sample.gpus) {
    const own = processesOf(gpu, kernelId);
    if (own.length === 0) {
      continue;
    }
    gpus.push(gpu.index);
    bytes = addUnlessNull(bytes, sum(own.map((process) => valueOf(process.memory_bytes))));
    // Several processes may run kernels at the same time, so the sum of their percentages may
    // exceed 100. Therefore the sum for each GPU is limited to 100 percent.
    const busy = sum(own.map((process) => valueOf(process.sm_percent)));
    sm_percent = addUnlessNull(sm_percent, busy === null ? null : Math.min(100, busy));
  }
  return { gpus, bytes, sm_percent };
}

/** Returns the processes on a GPU that belong to the kernel. */
function processesOf(gpu: GpuSample, kernelId: string): Process[] {
  const all = gpu.health.state === 'ok' ? (valueOf(gpu.processes) ?? []) : [];
  return all.filter((process) => valueOf(process.owner)?.notebook?.kernel_id === kernelId);
}

function sum(values: readonly (number | null)[]): number | null {
  return values.reduce<number | null>(addUnlessNull, null);
}

/** Adds two values. A missing value counts as 0, unless both are missing. */
function addUnlessNull(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : a + b;
}
