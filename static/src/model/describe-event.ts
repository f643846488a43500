/** Events in sentences. */

import { trans } from '../lib/translation';
import type { Event, ProcessRef, Run } from '../wire';
import { severityLevel } from './condition';
import { valueOf } from './reading';
import type { Level } from './describe';

/** What happened, and what to do about it or more of it; `more` is empty where there is nothing to add. */
interface EventDescription {
  text: string;
  more: string;
  level: Level;
}

/** An event in words; `null` for one that is not told, or of a kind that a newer server knows. */
export function describeEvent(event: Event): EventDescription | null {
  switch (event.what) {
    case 'gpu_lost':
      return words('act', trans.__('GPU lost (fallen off the bus)'));
    case 'gpu_hung':
      return words('act', trans.__('GPU not responding (driver hang)'));
    case 'gpu_failed':
      return words('act', trans.__('GPU cannot be opened'));
    case 'gpu_asleep':
      return words('quiet', trans.__('GPU suspended by power management'));
    case 'gpu_back':
      return words('quiet', trans.__('GPU responding again'));
    case 'xid': {
      const { code, pid, meaning } = event;
      const text =
        pid === undefined
          ? trans.__('Xid %1: %2', code, meaning)
          : trans.__('Xid %1 (process %2): %3', code, pid, meaning);
      return words('warn', text, event.advice);
    }
    case 'ecc_errors':
      return describeEcc(event.corrected, event.uncorrected);
    case 'condition_began':
      return words(severityLevel(event.severity), event.text);
    case 'condition_ended':
      return words(
        'quiet',
        event.condition === 'xid' ? trans.__('Resolved: Xid %1', event.code) : trans.__('Resolved: %1', event.text),
      );
    case 'process_started':
      return words('quiet', trans.__('%1 started', describeProcess(event)));
    case 'process_ended':
      return words('quiet', trans.__('%1 exited', describeProcess(event)));
    case 'mig_changed':
      return words('note', trans.__('MIG configuration changed'));
    case 'power_source_changed':
      return words('note', trans.__('Power source changed'));
    case 'run_began':
      return words('quiet', trans.__('Run started: %1', event.title));
    case 'run_ended':
      return runEnd(event);
    // Steps of runs are on charts alone.
    default:
      return null;
  }
}

function words(level: Level, text: string, more = ''): EventDescription {
  return { level, text, more };
}

function runEnd({ title, status }: Run): EventDescription {
  switch (status) {
    case 'failed':
      return words('warn', trans.__('Run failed: %1', title));
    case 'cancelled':
      return words('quiet', trans.__('Run canceled: %1', title));
    case 'lost':
      return words('warn', trans.__('Run lost: %1', title));
    default:
      return words('quiet', trans.__('Run completed: %1', title));
  }
}

function describeEcc(corrected: number, uncorrected: number): EventDescription {
  if (uncorrected === 0) {
    return words(
      'note',
      trans._n('%1 memory error corrected by hardware', '%1 memory errors corrected by hardware', corrected),
    );
  }
  const wrong = trans._n('%1 uncorrected memory error', '%1 uncorrected memory errors', uncorrected);
  const mended = trans._n('%1 memory error corrected', '%1 memory errors corrected', corrected);
  return words(
    'act',
    corrected === 0 ? wrong : `${wrong}, ${mended}`,
    trans.__('Results computed from this memory are invalid. Run the work again.'),
  );
}

/** `train.py (ana, PID 4711)`. */
function describeProcess(process: ProcessRef): string {
  const user = valueOf(process.user);
  const name = valueOf(process.name) ?? trans.__('A process');
  return user === null
    ? trans.__('%1 (PID %2)', name, process.pid)
    : trans.__('%1 (%2, PID %3)', name, user, process.pid);
}
