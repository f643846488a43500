/** The rules by which events are kept and listed, and the texts of events. */

import { formatDuration } from '../lib/format';
import { plainText } from '../lib/text';
import { trans } from '../lib/translation';
import type { Event, Sample, Mark, ProcessRef, Run, Vendor } from '../wire';
import {
  severityLevel,
  describeCondition,
  describeXid,
  driverErrorTitle,
  describeFiringAlert,
  xidOf,
} from './alerts';
import type { Level } from './describe';
import type { GpuState } from './gpu';
import { valueOf } from './reading';
import { vendorWordsOf } from './vendor-words';

export interface EventRow {
  /** A unique key that does not change while the event is listed. */
  key: string;
  at_ms: number;
  /** The index of the GPU that the event concerns; `null` for the machine. */
  gpu: number | null;
  text: string;
  /** Advice or details; empty if there are none. */
  more: string;
  level: Level;
  resolved: boolean;
}

export interface EventMark {
  at_ms: number;
  level: Level;
  text: string;
}

const MAX_EVENTS = 100;
/** The maximum number of marks among the kept events. */
const MAX_MARKS = 64;
const RESOLVED_EVENTS: readonly Event['what'][] = ['condition_ended', 'alert_resolved', 'gpu_back'];
/** The maximum time between an Xid and the condition that it raises. */
const MAX_XID_DISTANCE_MS = 5000;

/**
 * Returns the newest hundred events. To keep Xids longer, frequent events are dropped first: those
 * of processes, cells, steps of runs, and marks.
 */
export function keepNewestEvents(events: readonly Event[]): Event[] {
  const marks = dropOldestEvents(events, events.filter(isMark).length - MAX_MARKS, isMark);
  const rest = dropOldestEvents(marks, marks.length - MAX_EVENTS, isFrequent);
  return dropOldestEvents(rest, rest.length - MAX_EVENTS, () => true);
}

function dropOldestEvents(
  events: readonly Event[],
  count: number,
  isOfKind: (event: Event) => boolean,
): Event[] {
  let surplus = count;
  return events.filter((event) => {
    const dropped = surplus > 0 && isOfKind(event);
    surplus -= dropped ? 1 : 0;
    return !dropped;
  });
}

/** Adds an event. A mark may be older than the newest event. */
export function addEvent(events: readonly Event[], event: Event): Event[] {
  const place = isMark(event)
    ? events.findLastIndex(({ at_ms }) => at_ms <= event.at_ms) + 1
    : events.length;
  return keepNewestEvents([...events.slice(0, place), event, ...events.slice(place)]);
}

/**
 * Returns the rows of the event list, newest first. The names of running processes come from
 * `sample`, and those of other processes from their own events.
 */
export function eventRows(
  events: readonly Event[],
  withProcesses: boolean,
  sample: Sample | null = null,
  gpus: readonly GpuState[] = [],
): EventRow[] {
  const running = sample?.gpus.flatMap((gpu) => valueOf(gpu.processes) ?? []) ?? [];
  const processes = [...events.filter(isProcessEvent), ...running];
  const seen = new Map<string, number>();
  const rows = events.flatMap((event): EventRow[] => {
    if ((isProcessEvent(event) && !withProcesses) || isReportedByXid(event, events)) {
      return [];
    }
    const gpu = event.gpu?.index ?? null;
    const vendor = gpus.find(({ index }) => index === gpu)?.vendor;
    const description = describeEvent(event, processes, vendor);
    if (description === null) {
      return [];
    }
    const text = plainText(description.text);
    const identity = `${event.at_ms} ${gpu} ${text}`;
    const again = seen.get(identity) ?? 0;
    seen.set(identity, again + 1);
    return [
      {
        key: `${identity} ${again}`,
        at_ms: event.at_ms,
        gpu,
        text,
        more: plainText(description.more),
        level: levelOf(event, description.level, events),
        resolved: RESOLVED_EVENTS.includes(event.what),
      },
    ];
  });
  return rows.reverse();
}

export function countProcessEvents(events: readonly Event[]): number {
  return events.filter(isProcessEvent).length;
}

/** Returns the Xids, warnings and failures of each GPU, oldest first. */
export function groupProblemEventsByGpu(events: readonly Event[]): Map<number, EventMark[]> {
  const marked = new Map<number, EventMark[]>();
  for (const event of events) {
    const gpu = event.gpu?.index;
    if (
      gpu === undefined ||
      event.what === 'condition_ended' ||
      isProcessEvent(event) ||
      isReportedByXid(event, events)
    ) {
      continue;
    }
    const description = describeEvent(event, []);
    const level = levelOf(event, description?.level ?? 'none', events);
    if (level === 'warning' || level === 'critical' || event.what === 'xid') {
      marked.set(gpu, [
        ...(marked.get(gpu) ?? []),
        { at_ms: event.at_ms, level, text: plainText(description?.text ?? '') },
      ]);
    }
  }
  return marked;
}

/** Returns the marks that users have set, which all charts show. */
export function marksOf(events: readonly Event[]): Pick<EventMark, 'at_ms' | 'text'>[] {
  return events
    .filter(isMark)
    .map((mark) => ({ at_ms: mark.at_ms, text: plainText(describeMark(mark)) }));
}

function isFrequent(event: Event): boolean {
  return isProcessEvent(event) || event.what === 'run_step' || event.what === 'cell';
}

function isMark(event: Event): event is Extract<Event, { what: 'mark' }> {
  return event.what === 'mark';
}

function isProcessEvent(
  event: Event,
): event is Extract<Event, { what: 'process_started' | 'process_ended' }> {
  return event.what === 'process_started' || event.what === 'process_ended';
}

/**
 * Returns whether an Xid event already reports the condition whose start `event` reports. In this
 * case, the Xid event is sufficient, because it also contains the advice.
 */
function isReportedByXid(event: Event, events: readonly Event[]): boolean {
  return (
    event.what === 'condition_began' &&
    events.some((other) => other.what === 'xid' && isSameXid(event, other))
  );
}

/** Returns the level of an event. An Xid has the level of the condition that it raised. */
function levelOf(event: Event, level: Level, events: readonly Event[]): Level {
  const raised = events.find(
    (other) => other.what === 'condition_began' && isSameXid(event, other),
  );
  return event.what === 'xid' && raised?.what === 'condition_began'
    ? severityLevel(raised.severity)
    : level;
}

function isSameXid(a: Event, b: Event): boolean {
  return xidCode(a) !== null && xidCode(a) === xidCode(b) && isSameGpuAndTime(a, b);
}

function xidCode(event: Event): number | null {
  return event.what === 'xid' || (event.what === 'condition_began' && event.condition === 'xid')
    ? event.code
    : null;
}

function isSameGpuAndTime(a: Event, b: Event): boolean {
  return a.gpu?.index === b.gpu?.index && Math.abs(a.at_ms - b.at_ms) <= MAX_XID_DISTANCE_MS;
}

/** A description of an event. `more` is advice or details, and may be empty. */
interface EventDescription {
  text: string;
  more: string;
  level: Level;
}

type EventDescriber<E> = (
  event: E,
  processes: readonly ProcessRef[],
  vendor: Vendor,
) => EventDescription | null;

/** The texts by kind of event. The compiler checks that no kind is missing. */
const TEXTS: { [K in Event['what']]: EventDescriber<Extract<Event, { what: K }>> } = {
  gpu_lost: () => makeDescription('critical', trans.__('GPU lost (fallen off the bus)')),
  gpu_hung: () => makeDescription('critical', trans.__('GPU not responding (driver hang)')),
  // The server provides the meaning of the code and the advice.
  gpu_failed: ({ meaning, advice }) =>
    meaning === ''
      ? makeDescription('critical', trans.__('GPU cannot be read'))
      : makeDescription('critical', trans.__('GPU cannot be read: %1', meaning), advice),
  gpu_added: () => makeDescription('none', trans.__('GPU added')),
  gpu_asleep: () => makeDescription('none', trans.__('GPU suspended by power management')),
  gpu_back: () => makeDescription('none', trans.__('GPU responding again')),
  xid: ({ code, pid, meaning, advice }) => {
    const xid = xidOf(code);
    return makeDescription(
      'warning',
      describeXid(code, pid, xid?.meaning() ?? meaning),
      xid?.advice() ?? advice,
    );
  },
  ecc_errors: ({ corrected, uncorrected }) => describeEcc(corrected, uncorrected),
  condition_began: (event, processes) =>
    makeDescription(severityLevel(event.severity), describeCondition(event, processes)),
  condition_ended: (event, processes) => {
    const text = describeCondition(event, processes);
    const isXid = event.condition === 'xid';
    return makeDescription(
      'none',
      trans.__('Resolved: %1', isXid ? driverErrorTitle(event.code) : text),
    );
  },
  process_started: (event) =>
    makeDescription('none', trans.__('%1 started', describeProcess(event))),
  process_ended: (event) => makeDescription('none', trans.__('%1 exited', describeProcess(event))),
  mig_changed: (_event, _processes, vendor) =>
    makeDescription('notice', vendorWordsOf({ vendor }).partitionsChanged),
  power_source_changed: () => makeDescription('notice', trans.__('Power source changed')),
  clock_changed: ({ by_ms }) => describeClockChange(by_ms),
  run_began: ({ title }) => makeDescription('none', trans.__('Run started: %1', title)),
  // Steps of runs and executions of cells are only shown in charts.
  run_step: () => null,
  cell: () => null,
  run_ended: describeRunEnd,
  mark: (event) => makeDescription('none', trans.__('Mark: %1', describeMark(event))),
  alert_firing: (event) =>
    makeDescription(
      severityLevel(event.severity),
      trans.__('Alert %1', describeFiringAlert(event)),
    ),
  alert_resolved: (event) =>
    makeDescription('none', trans.__('Resolved: alert %1', describeFiringAlert(event))),
  // The server's message includes the advice.
  alert_problem: ({ message }) => makeDescription('warning', message),
};

/**
 * Returns an event as text, or `null` if the event is not listed or its kind is unknown.
 * `processes` provides the names of processes, and `vendor` is the vendor of the GPU.
 */
function describeEvent(
  event: Event,
  processes: readonly ProcessRef[],
  vendor: Vendor = 'nvidia',
): EventDescription | null {
  const describe = TEXTS[event.what] as EventDescriber<Event> | undefined;
  return describe?.(event, processes, vendor) ?? null;
}

/** Returns text such as `epoch 3 (ana)`. */
function describeMark({ text, user }: Mark): string {
  return user === undefined ? text : trans.__('%1 (%2)', text, user);
}

function makeDescription(level: Level, text: string, more = ''): EventDescription {
  return { level, text, more };
}

function describeRunEnd({ title, status }: Run): EventDescription {
  const failures: Partial<Record<string, EventDescription>> = {
    failed: makeDescription('warning', trans.__('Run failed: %1', title)),
    canceled: makeDescription('none', trans.__('Run canceled: %1', title)),
    lost: makeDescription('warning', trans.__('Run lost: %1', title)),
  };
  return failures[status] ?? makeDescription('none', trans.__('Run completed: %1', title));
}

function describeEcc(corrected: number, uncorrected: number): EventDescription {
  if (uncorrected === 0) {
    return makeDescription(
      'notice',
      trans._n(
        '%1 memory error corrected by hardware',
        '%1 memory errors corrected by hardware',
        corrected,
      ),
    );
  }
  const wrong = trans._n(
    '%1 uncorrected memory error',
    '%1 uncorrected memory errors',
    uncorrected,
  );
  const mended = trans._n('%1 memory error corrected', '%1 memory errors corrected', corrected);
  return makeDescription(
    'critical',
    corrected === 0 ? wrong : `${wrong}, ${mended}`,
    trans.__('Results computed from this memory are invalid. Run the work again.'),
  );
}

function describeClockChange(byMs: number): EventDescription {
  const by = formatDuration(Math.abs(byMs));
  return makeDescription(
    'warning',
    byMs < 0
      ? trans.__('System clock set back by %1', by)
      : trans.__('System clock set forward by %1', by),
    trans.__('Check the time synchronization of this machine.'),
  );
}

/** Returns text such as `train.py (ana, PID 4711)`. */
function describeProcess(process: ProcessRef): string {
  const user = valueOf(process.user);
  const name = valueOf(process.name) ?? trans.__('A process');
  return user === null
    ? trans.__('%1 (PID %2)', name, process.pid)
    : trans.__('%1 (%2, PID %3)', name, user, process.pid);
}
