/** Texts about events. */

import { formatDuration } from '../lib/format';
import { trans } from '../lib/translation';
import type { Event, Mark, ProcessRef, Run, Vendor } from '../wire';
import { severityLevel } from './condition';
import { describeCondition, describeXid, errorTitle } from './describe-condition';
import { describeFiringAlert } from './firing-alert';
import { valueOf } from './reading';
import type { Level } from './describe';
import { wordsOf } from './vendor-words';
import { xidOf } from './xid';

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
  gpu_lost: () => description('critical', trans.__('GPU lost (fallen off the bus)')),
  gpu_hung: () => description('critical', trans.__('GPU not responding (driver hang)')),
  // The server provides the meaning of the code and the advice.
  gpu_failed: ({ meaning, advice }) =>
    meaning === ''
      ? description('critical', trans.__('GPU cannot be read'))
      : description('critical', trans.__('GPU cannot be read: %1', meaning), advice),
  gpu_added: () => description('none', trans.__('GPU added')),
  gpu_asleep: () => description('none', trans.__('GPU suspended by power management')),
  gpu_back: () => description('none', trans.__('GPU responding again')),
  xid: ({ code, pid, meaning, advice }) => {
    const xid = xidOf(code);
    return description(
      'warning',
      describeXid(code, pid, xid?.meaning() ?? meaning),
      xid?.advice() ?? advice,
    );
  },
  ecc_errors: ({ corrected, uncorrected }) => describeEcc(corrected, uncorrected),
  condition_began: (event, processes) =>
    description(severityLevel(event.severity), describeCondition(event, processes)),
  condition_ended: (event, processes) => {
    const text = describeCondition(event, processes);
    const isXid = event.condition === 'xid';
    return description('none', trans.__('Resolved: %1', isXid ? errorTitle(event.code) : text));
  },
  process_started: (event) => description('none', trans.__('%1 started', describeProcess(event))),
  process_ended: (event) => description('none', trans.__('%1 exited', describeProcess(event))),
  mig_changed: (_event, _processes, vendor) =>
    description('notice', wordsOf({ vendor }).partitionsChanged),
  power_source_changed: () => description('notice', trans.__('Power source changed')),
  clock_changed: ({ by_ms }) => describeClockChange(by_ms),
  run_began: ({ title }) => description('none', trans.__('Run started: %1', title)),
  // Steps of runs and executions of cells are only shown in charts.
  run_step: () => null,
  cell: () => null,
  run_ended: describeRunEnd,
  mark: (event) => description('none', trans.__('Mark: %1', describeMark(event))),
  alert_firing: (event) =>
    description(severityLevel(event.severity), trans.__('Alert %1', describeFiringAlert(event))),
  alert_resolved: (event) =>
    description('none', trans.__('Resolved: alert %1', describeFiringAlert(event))),
  // The server's message includes the advice.
  alert_problem: ({ message }) => description('warning', message),
};

/**
 * Returns an event as text, or `null` if the event is not listed or its kind is unknown.
 * `processes` provides the names of processes, and `vendor` is the vendor of the GPU.
 */
export function describeEvent(
  event: Event,
  processes: readonly ProcessRef[],
  vendor: Vendor = 'nvidia',
): EventDescription | null {
  const describe = TEXTS[event.what] as EventDescriber<Event> | undefined;
  return describe?.(event, processes, vendor) ?? null;
}

/** Returns text such as `epoch 3 (ana)`. */
export function describeMark({ text, user }: Mark): string {
  return user === undefined ? text : trans.__('%1 (%2)', text, user);
}

function description(level: Level, text: string, more = ''): EventDescription {
  return { level, text, more };
}

function describeRunEnd({ title, status }: Run): EventDescription {
  const failures: Partial<Record<string, EventDescription>> = {
    failed: description('warning', trans.__('Run failed: %1', title)),
    canceled: description('none', trans.__('Run canceled: %1', title)),
    lost: description('warning', trans.__('Run lost: %1', title)),
  };
  return failures[status] ?? description('none', trans.__('Run completed: %1', title));
}

function describeEcc(corrected: number, uncorrected: number): EventDescription {
  if (uncorrected === 0) {
    return description(
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
  return description(
    'critical',
    corrected === 0 ? wrong : `${wrong}, ${mended}`,
    trans.__('Results computed from this memory are invalid. Run the work again.'),
  );
}

function describeClockChange(byMs: number): EventDescription {
  const by = formatDuration(Math.abs(byMs));
  return description(
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
