/** Processes as /proc shows them. */

import { readdirSync, readFileSync } from 'node:fs';

interface ProcessEntry {
  pid: number;
  parent: number;
  state: string;
}

/** The collector below this process; `null` while there is none. */
export function collectorBelow(pid: number): number | null {
  return gpumonPidsBelow(pid).find((one) => argumentsOf(one).includes('collect')) ?? null;
}

/** The PIDs of every gpumon below this process. */
export function gpumonPidsBelow(pid: number): number[] {
  return below(pid)
    .map((entry) => entry.pid)
    .filter((one) => argumentsOf(one)[0]?.endsWith('/gpumon') === true);
}

/** Whether the process runs; a dead one that nobody has waited for does not. */
export function isRunning(pid: number): boolean {
  const entry = read(pid);
  return entry !== null && entry.state !== 'Z' && entry.state !== 'X';
}

/**
 * The PID of the process below this one that has `word` at the end of an argument; `null` while
 * there is none.
 */
export function pidBelow(pid: number, word: string): number | null {
  const is = (entry: ProcessEntry): boolean =>
    argumentsOf(entry.pid).some((argument) => argument.endsWith(word));
  return below(pid).find(is)?.pid ?? null;
}

/** The PIDs of what this process has started itself. */
export function childrenOf(pid: number): number[] {
  return below(pid)
    .filter((entry) => entry.parent === pid)
    .map((entry) => entry.pid);
}

/** Everything below this process that runs. */
function below(pid: number): ProcessEntry[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => read(Number(name)))
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

/** `null` where the process has just ended. */
function read(pid: number): ProcessEntry | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name before the last bracket may contain anything.
    const [state = '', parent = ''] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { pid, parent: Number(parent), state };
  } catch {
    return null;
  }
}

/**
 * Of one of this test's own processes: other tests have some with command lines that fill all
 * memory.
 */
function argumentsOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return [];
  }
}
