/** The selection of events to keep and to list, and their texts. */

import { plainText } from '../lib/text';
import type { Event, Sample } from '../wire';
import { severityLevel } from './condition';
import { describeEvent, describeMark } from './describe-event';
import type { GpuState } from './gpu';
import type { Level } from './describe';
import { valueOf } from './reading';

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
 * Returns the newest hundred events. Frequent events (processes, cells, steps of runs and marks)
 * are dropped before Xids.
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
 * Returns the rows of the event list, newest first. Processes are named by `sample` if they are
 * running, and otherwise by their own events.
 */
export function eventRows(
  events: readonly Event[],
  withProcesses: boolean,
  sample: Sample | null = null,
  gpus: readonly GpuState[] = [],
): EventRow[] {
  const running = sample?.gpus.flatMap((gpu) => valueOf(gpu.processes) ?? []) ?? [];
  const processes = [...events.filter(isProcess), ...running];
  const seen = new Map<string, number>();
  const rows = events.flatMap((event): EventRow[] => {
    if ((isProcess(event) && !withProcesses) || isReportedByXid(event, events)) {
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
  return events.filter(isProcess).length;
}

/** Returns the Xids, warnings and failures of each GPU, oldest first. */
export function groupProblemEventsByGpu(events: readonly Event[]): Map<number, EventMark[]> {
  const marked = new Map<number, EventMark[]>();
  for (const event of events) {
    const gpu = event.gpu?.index;
    if (
      gpu === undefined ||
      event.what === 'condition_ended' ||
      isProcess(event) ||
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
  return isProcess(event) || event.what === 'run_step' || event.what === 'cell';
}

function isMark(event: Event): event is Extract<Event, { what: 'mark' }> {
  return event.what === 'mark';
}

function isProcess(
  event: Event,
): event is Extract<Event, { what: 'process_started' | 'process_ended' }> {
  return event.what === 'process_started' || event.what === 'process_ended';
}

/**
 * Returns whether a condition event repeats an Xid event, which already reports the condition and
 * has advice.
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
