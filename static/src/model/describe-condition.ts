/** Long and short descriptions of conditions, which can be translated. */

import { findOwnProperty } from '../lib/own';
import { joinParts, plainText } from '../lib/text';
import { trans } from '../lib/translation';
import type { Condition, ProcessRef } from '../wire';
import { describeReasons, SENTENCES, SHORTS, type Named } from '../wire/texts';
import { ERROR_TITLES } from '../wire/vendors';
import { notebookNamesOf, processName, textOf } from './holders';
import { describeFilling, summarizeFilling } from './memory-forecast';
import { valueOf } from './reading';
import { xidOf } from './xid';

/** The first code for errors of drivers that do not number their errors. */
const FIRST_UNNUMBERED_CODE = 100_000;

/** Returns the name of a process by its PID. */
type NameOf = (pid: number) => string;

/** The maximum number of names in a sentence. The others are counted. */
const MAX_NAMED = 3;

/**
 * Describes a condition in a sentence. For a kind that only a newer server knows, returns the
 * server's sentence. Processes that have exited are described by their PIDs.
 */
export function describeCondition(condition: Condition, processes: readonly ProcessRef[]): string {
  const nameOf = (pid: number): string => describeProcess(pid, condition.since_ms, processes);
  return plainText(describeInSentences(condition, nameOf) ?? condition.text);
}

function describeInSentences(condition: Condition, nameOf: NameOf): string | null {
  if (condition.condition === 'xid') {
    const { code, pid } = condition;
    const xid = xidOf(code);
    return xid === null ? null : describeXid(code, pid, `${xid.meaning()} ${xid.advice()}`);
  }
  if (condition.condition === 'memory_filling') {
    const { left_ms, bytes_per_second, growing } = condition;
    const growers = growing.map(({ pid, ...growth }) => ({ name: nameOf(pid), ...growth }));
    return describeFilling(left_ms, bytes_per_second, growers);
  }
  const describe = findOwnProperty(SENTENCES, condition.condition) as
    ((of: Condition, named: Named) => string[]) | undefined;
  const sentences = describe?.(condition, (pids) => describeProcesses(pids, nameOf));
  return sentences === undefined ? null : joinParts(sentences, ' ');
}

/**
 * Describes a condition in a few words for a line with many numbers. Returns `null` for a kind that
 * only a newer server knows.
 */
export function summarizeCondition(condition: Condition): string | null {
  switch (condition.condition) {
    case 'xid':
      return errorTitle(condition.code);
    case 'throttled':
      return describeReasons(condition.reasons);
    case 'memory_filling':
      return summarizeFilling(condition.left_ms);
    default: {
      const describe = findOwnProperty(SHORTS, condition.condition) as
        ((of: Condition) => string) | undefined;
      return describe?.(condition) ?? null;
    }
  }
}

/** Describes an Xid with its process, if known, and its meaning. */
export function describeXid(code: number, pid: number | undefined, text: string): string {
  const title = errorTitle(code);
  return pid === undefined
    ? trans.__('%1: %2', title, text)
    : trans.__('%1 (process %2): %3', title, pid, text);
}

/** Returns the common name of a driver error, such as `Xid 79`. */
export function errorTitle(code: number): string {
  const unknown =
    code < FIRST_UNNUMBERED_CODE ? trans.__('Xid %1', code) : trans.__('driver error %1', code);
  return ERROR_TITLES[code]?.() ?? unknown;
}

function describeProcesses(pids: readonly number[], nameOf: NameOf): string {
  const names = pids.slice(0, MAX_NAMED).map(nameOf).join(', ');
  const more = pids.length - MAX_NAMED;
  return more > 0 ? trans._n('%2 and %1 more', '%2 and %1 more', more, names) : names;
}

/**
 * Returns text such as `train.ipynb (ana)`, or only the PID if another process has the PID by now.
 */
function describeProcess(pid: number, then_ms: number, processes: readonly ProcessRef[]): string {
  const process = processes.findLast(
    (one) => one.pid === pid && (valueOf(one.started_ms) ?? Infinity) <= then_ms,
  );
  if (process === undefined) {
    return trans.__('PID %1', pid);
  }
  const name = processName(process, notebookNamesOf(processes));
  const user = textOf(process.user);
  return user.reason === null ? `${name} (${plainText(user.text, 32)})` : name;
}
