/**
 * The alerts of a GPU as they are displayed, and the texts about conditions. Alerts come from the
 * GPU's conditions and from user-defined rules.
 */

import { findOwnProperty } from '../lib/collections';
import { formatDuration, formatTimeWithDateUnlessToday } from '../lib/format';
import { joinParts, plainText } from '../lib/text';
import { trans } from '../lib/translation';
import type { Condition, GpuSample, Severity, ProcessRef, FiringAlert } from '../wire';
import { describeReasons, SENTENCES, SHORTS, type Named } from '../wire/texts';
import { ERROR_TITLES } from '../wire/vendors';
import type { Xid } from '../wire/xids';
import { describeClock, describeHealth, type Level, type Description } from './describe';
import type { GpuState } from './gpu';
import { notebookNamesOf, processName, textOf, type HolderRow } from './holders';
import {
  unifiedMemoryAdvice,
  describeFilling,
  summarizeFilling,
  describeForecast,
  forecastOf,
} from './memory';
import { valueOf } from './reading';

export interface Alert extends Description {
  /** A short form of the text. */
  short: string;
  /** The identifier of the alert, which stays the same while the alert lasts. */
  key: string;
}

/**
 * Returns the level of a severity. A severity that only a newer server knows is shown as a notice.
 */
export function severityLevel(severity: Severity): Level {
  return RANKS.includes(severity) ? severity : 'notice';
}

const RANKS: readonly Level[] = ['critical', 'warning', 'notice', 'none'];

/**
 * Describes throttling for ordinary reasons. It varies quickly, so it is shown separately from
 * other conditions. Returns `null` if there is none.
 */
export function describeThrottling(
  gpu: GpuSample | null,
  now_ms: number,
): Pick<Description, 'text' | 'title'> | null {
  const condition = gpu?.conditions.find(isOrdinaryThrottling);
  return condition === undefined
    ? null
    : {
        text: describeReasons(condition.reasons),
        title: `${describeReasons(condition.reasons, condition)}\n${describeConditionTime(condition, now_ms)}`,
      };
}

function isOrdinaryThrottling(
  condition: Condition,
): condition is Extract<Condition, { condition: 'throttled' }> {
  return condition.condition === 'throttled' && condition.severity === 'notice';
}

/**
 * Returns a GPU's conditions, the most severe first, then the oldest. The memory forecast and
 * ordinary throttling are shown elsewhere.
 */
export function listConditionAlerts(gpu: GpuSample | null, now_ms: number): Alert[] {
  const processes = valueOf(gpu?.processes) ?? [];
  const isElsewhere = (one: Condition): boolean =>
    one.condition === 'memory_filling' || isOrdinaryThrottling(one);
  const shown = (gpu?.conditions ?? []).filter((one) => !isElsewhere(one));
  const oldestFirst = shown.sort((a, b) => a.since_ms - b.since_ms);
  return sortBySeverity(
    oldestFirst.map((condition) => ({
      key: keyOf(condition),
      text: joinParts(
        [describeCondition(condition, processes), ...listAdvice(condition, gpu)],
        ' ',
      ),
      short: summarizeCondition(condition) ?? plainText(condition.text),
      title: describeConditionTime(condition, now_ms),
      level: severityLevel(condition.severity),
    })),
  );
}

/**
 * Returns the part of a condition's advice that depends on the GPU, or an empty list if there is
 * none.
 */
function listAdvice({ condition }: Condition, gpu: GpuSample | null): string[] {
  return condition === 'memory_nearly_full' ? unifiedMemoryAdvice(gpu) : [];
}

/** Returns the rank of a level. A lower rank is more severe. */
export function levelRank(level: Level): number {
  return RANKS.indexOf(level);
}

/** Sorts by severity. Alerts of the same severity keep their order. */
export function sortBySeverity<T extends Pick<Alert, 'level'>>(alerts: readonly T[]): T[] {
  return [...alerts].sort((a, b) => levelRank(a.level) - levelRank(b.level));
}

/** Returns the most severe level, or `null` if none is more severe than a notice. */
export function worstLevel(levels: readonly Level[]): 'warning' | 'critical' | null {
  if (levels.includes('critical')) {
    return 'critical';
  }
  return levels.includes('warning') ? 'warning' : null;
}

/**
 * Returns a text such as `since 10:42:07, for 26 min`. For a repeated Xid, the text includes how
 * often it has occurred.
 */
function describeConditionTime(condition: Condition, now_ms: number): string {
  if (condition.condition !== 'xid' || condition.count < 2) {
    return describeStartAndDuration(condition, now_ms);
  }
  return trans._n(
    'since %2, for %3; %1 time, last at %4',
    'since %2, for %3; %1 times, last at %4',
    condition.count,
    formatTimeWithDateUnlessToday(condition.since_ms, now_ms),
    formatDuration(now_ms - condition.since_ms),
    formatTimeWithDateUnlessToday(condition.last_ms, now_ms),
  );
}

/** Returns the identifier of a condition: its kind and start time, and for an Xid also its code. */
function keyOf(condition: Condition): string {
  const kind = condition.condition === 'xid' ? `xid ${condition.code}` : condition.condition;
  return `${kind} ${condition.since_ms}`;
}

/**
 * Some drivers do not number their errors. Codes from this number on stand for errors of such
 * drivers.
 */
const FIRST_UNNUMBERED_CODE = 100_000;

/** Returns the name of a process by its PID. */
type NameOf = (pid: number) => string;

/** The maximum number of names in a sentence. If there are more, the sentence states how many. */
const MAX_NAMED = 3;

/**
 * Describes a condition in a sentence. If this version does not know the kind of condition, returns
 * the server's sentence. A process that has exited is described by its PID.
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
 * Describes a condition in a few words, for a line that also shows many numbers. Returns `null` for
 * a condition of a newer server whose kind is unknown here.
 */
export function summarizeCondition(condition: Condition): string | null {
  switch (condition.condition) {
    case 'xid':
      return driverErrorTitle(condition.code);
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
  const title = driverErrorTitle(code);
  return pid === undefined
    ? trans.__('%1: %2', title, text)
    : trans.__('%1 (process %2): %3', title, pid, text);
}

/** Returns the common name of a driver error, such as `Xid 79`. */
export function driverErrorTitle(code: number): string {
  const unknown =
    code < FIRST_UNNUMBERED_CODE ? trans.__('Xid %1', code) : trans.__('driver error %1', code);
  return ERROR_TITLES[code]?.() ?? unknown;
}

/** Returns the names of the first processes, and the number of further processes. */
export function describeProcesses(pids: readonly number[], nameOf: NameOf): string {
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

/**
 * The meanings of Xids for pages in other languages than English, because the server sends only
 * English texts. The texts are long, so they are loaded only when needed.
 */
let xidTexts: readonly Xid[] = [];

/**
 * Loads the meanings of Xids. It must be called before anything is shown in a language other than
 * English.
 */
export async function loadXids(): Promise<void> {
  xidTexts = (await import('../wire/xids')).XIDS;
}

/**
 * Returns the texts of an Xid. Returns `null` if the server's text must be shown, because the
 * language is English or this version does not know the code.
 */
export function xidOf(code: number): Xid | null {
  return xidTexts.find(({ codes }) => codes.includes(code)) ?? null;
}

/** Returns the alerts of a GPU, or of the machine if `gpu` is `null`. */
export function firingAlerts(
  firing: readonly FiringAlert[],
  gpu: number | null,
  now_ms: number,
): Alert[] {
  return firing
    .filter((alert) => (alert.gpu?.index ?? null) === gpu)
    .map((alert) => ({
      key: firingAlertKey(alert),
      text: describeFiringAlert(alert),
      short: plainText(alert.rule),
      title: joinParts(
        [
          describeStartAndDuration(alert, now_ms),
          alert.silenced === true ? trans.__('silenced') : '',
        ],
        '\n',
      ),
      level: severityLevel(alert.severity),
    }));
}

/** Returns text such as `hot: Temperature 87 °C, above 85 °C for 2 min`. */
export function describeFiringAlert({ rule, text }: Pick<FiringAlert, 'rule' | 'text'>): string {
  return plainText(trans.__('%1: %2', rule, text));
}

/** Returns a key that does not change while the alert fires. */
export function firingAlertKey({ rule, gpu, since_ms }: FiringAlert): string {
  return `alert ${gpu?.index ?? ''} ${since_ms} ${rule}`;
}

function describeStartAndDuration({ since_ms }: Condition | FiringAlert, now_ms: number): string {
  return trans.__(
    'since %1, for %2',
    formatTimeWithDateUnlessToday(since_ms, now_ms),
    formatDuration(now_ms - since_ms),
  );
}

/** The values that a GPU's alerts depend on in addition to the GPU's own readings. */
interface AlertContext {
  memoryHorizon_ms: number;
  firing: readonly FiringAlert[];
}

/**
 * Returns the alerts of a GPU, the most severe first. `rows` contains the rows of the GPU's
 * holders.
 */
export function gpuAlerts(
  gpu: GpuState,
  rows: readonly HolderRow[],
  known: AlertContext,
  now_ms: number,
): Alert[] {
  const { now } = gpu;
  const health = now === null ? null : describeHealth(now.health, now_ms);
  const forecast = forecastOf(gpu, rows, known.memoryHorizon_ms);
  const foreseen = forecast && describeForecast(forecast);
  return sortBySeverity([
    ...(health === null ? [] : [{ ...health, key: 'health' }]),
    ...(forecast === null || foreseen === null
      ? []
      : [
          {
            ...foreseen,
            title: joinParts([foreseen.title, ...unifiedMemoryAdvice(now)], '\n'),
            short: summarizeFilling(forecast.left_ms),
            key: 'forecast',
          },
        ]),
    ...firingAlerts(known.firing, gpu.index, now_ms),
    ...listConditionAlerts(now, now_ms),
  ]);
}

/**
 * Returns the most severe alert in a few words, or else the reason for reduced clocks. The returned
 * `title` contains the details.
 */
export function summarizeState(
  gpu: GpuState,
  alerts: readonly Alert[],
  now_ms: number,
): Description {
  const [worst] = alerts;
  if (worst !== undefined) {
    const title = alerts.map(({ text, title }) => joinParts([text, title], '\n')).join('\n\n');
    return { text: worst.short, title, level: worst.level };
  }
  const { now } = gpu;
  const reasons = now?.health.state === 'ok' ? valueOf(now.throttle_reasons) : null;
  const clocks = describeThrottling(now, now_ms) ?? describeClock(reasons ?? []);
  return { text: clocks?.text ?? '', title: clocks?.title ?? '', level: 'none' };
}
