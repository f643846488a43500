/** Functions that read processes from /proc. */

import { readdirSync, readFileSync } from 'node:fs';

interface ProcessEntry {
  pid: number;
  parent: number;
  state: string;
}

/**
 * Returns the PID of the collector among the descendants of the process `pid`, or `null` if there
 * is none.
 */
export function findCollector(pid: number): number | null {
  return listGpumonPids(pid).find((one) => argumentsOf(one).includes('collect')) ?? null;
}

/** Returns the PIDs of all gpumon processes among the descendants of the process `pid`. */
export function listGpumonPids(pid: number): number[] {
  return listDescendants(pid)
    .map((entry) => entry.pid)
    .filter((one) => argumentsOf(one)[0]?.endsWith('/gpumon') === true);
}

/** Returns whether the process is running. A zombie does not count as running. */
export function isRunning(pid: number): boolean {
  const entry = readProcess(pid);
  return entry !== null && entry.state !== 'Z' && entry.state !== 'X';
}

/**
 * Returns the PID of a descendant of the process `pid` that has an argument ending with `word`, or
 * `null` if there is none.
 */
export function findPidByArgument(pid: number, word: string): number | null {
  const is = (entry: ProcessEntry): boolean =>
    argumentsOf(entry.pid).some((argument) => argument.endsWith(word));
  return listDescendants(pid).find(is)?.pid ?? null;
}

/** Returns the PIDs of the direct children of the process `pid`. */
export function childrenOf(pid: number): number[] {
  return listDescendants(pid)
    .filter((entry) => entry.parent === pid)
    .map((entry) => entry.pid);
}

/** Returns all descendants of the process `pid`. */
function listDescendants(pid: number): ProcessEntry[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readProcess(Number(name)))
    .filter((entry) => entry !== null);
  const found: ProcessEntry[] = [];
  let parents = [pid];
  while (parents.length > 0) {
    const children = all.filter((entry) => parents.includes(entry.parent));
    found.push(...children);
    parents = children.map((entry) => entry.pid);
  }
  return found.filter((entry) => entry.state !== 'Z');
}

/** Returns the state of a process, or `null` if it has ended. */
function readProcess(pid: number): ProcessEntry | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The process name ends at the last parenthesis and may itself contain parentheses and spaces.
    const [state = '', parent = ''] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { pid, parent: Number(parent), state };
  } catch {
    return null;
  }
}

/**
 * Returns the arguments of a process that this test has started. The arguments of other processes
 * must not be read, because some tests create command lines that fill all memory.
 */
function argumentsOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return [];
  }
}
