/** Conditions as sentences and in a few words, in texts that can be translated. */

import { own } from '../lib/own';
import { joined, plainText } from '../lib/text';
import { trans } from '../lib/translation';
import type { Condition, ProcessRef } from '../wire';
import { describeReasons, SENTENCES, SHORTS, type Named } from '../wire/texts';
import { ERROR_TITLES } from '../wire/vendors';
import { notebookNamesOf, processName, textOf } from './holders';
import { describeFilling, shortFilling } from './memory-forecast';
import { valueOf } from './reading';
import { xidOf } from './xid';

/** Errors of drivers that do not number them have codes from this one on. */
const FIRST_NAMED = 100_000;

/** A process as text, by its PID. */
type NameOf = (pid: number) => string;

/** The most names in a sentence; more are counted. */
const NAMED_MOST = 3;

/**
 * A condition in a sentence; the server's own where only a newer server knows its kind. Processes
 * are named by `processes`, those that are gone by their PIDs.
 */
export function describeCondition(condition: Condition, processes: readonly ProcessRef[]): string {
  const nameOf = (pid: number): string => describeProcess(pid, condition.since_ms, processes);
  return plainText(sentencesOf(condition, nameOf) ?? condition.text);
}

function sentencesOf(condition: Condition, nameOf: NameOf): string | null {
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
  const describe = own(SENTENCES, condition.condition) as
    ((of: Condition, named: Named) => string[]) | undefined;
  const sentences = describe?.(condition, (pids) => describeProcesses(pids, nameOf));
  return sentences === undefined ? null : joined(sentences, ' ');
}

/** A condition for a line that is full of numbers; `null` if only a newer server knows its kind. */
export function shortCondition(condition: Condition): string | null {
  switch (condition.condition) {
    case 'xid':
      return errorTitle(condition.code);
    case 'throttled':
      return describeReasons(condition.reasons);
    case 'memory_filling':
      return shortFilling(condition.left_ms);
    default: {
      const describe = own(SHORTS, condition.condition) as ((of: Condition) => string) | undefined;
      return describe?.(condition) ?? null;
    }
  }
}

/** An Xid with what is known of it. */
export function describeXid(code: number, pid: number | undefined, text: string): string {
  const title = errorTitle(code);
  return pid === undefined
    ? trans.__('%1: %2', title, text)
    : trans.__('%1 (process %2): %3', title, pid, text);
}

/** Returns what people call a driver error: `Xid 79`, or its name. */
export function errorTitle(code: number): string {
  const unknown = code < FIRST_NAMED ? trans.__('Xid %1', code) : trans.__('driver error %1', code);
  return ERROR_TITLES[code]?.() ?? unknown;
}

function describeProcesses(pids: readonly number[], nameOf: NameOf): string {
  const names = pids.slice(0, NAMED_MOST).map(nameOf).join(', ');
  const more = pids.length - NAMED_MOST;
  return more > 0 ? trans._n('%2 and %1 more', '%2 and %1 more', more, names) : names;
}

/** `train.ipynb (ana)`; by the PID alone where the process is another than it was then. */
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
