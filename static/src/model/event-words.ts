/** Events in sentences. */

import { trans } from '../lib/translation';
import type { Event, ProcessRef, Run } from '../wire';
import { severityLevel } from './condition';
import { valueOf } from './reading';
import type { Level } from './words';

/** What happened, and what to do about it or more of it; `more` is empty where there is nothing to add. */
interface EventWords {
  text: string;
  more: string;
  level: Level;
}

/** An event in words; `null` for one that is not told, or of a kind that a newer server knows. */
export function eventWords(event: Event): EventWords | null {
  switch (event.what) {
    case 'gpu_lost':
      return words('act', trans.__('The GPU is lost: the driver says that it has fallen off the bus.'));
    case 'gpu_hung':
      return words('act', trans.__('The driver does not answer for this GPU.'));
    case 'gpu_failed':
      return words('act', trans.__('The driver refuses to open this GPU.'));
    case 'gpu_asleep':
      return words('quiet', trans.__('The system has switched the GPU off to save power.'));
    case 'gpu_back':
      return words('quiet', trans.__('The GPU answers again.'));
    case 'xid': {
      const { code, pid, meaning } = event;
      const text =
        pid === undefined
          ? trans.__('Xid %1: %2', code, meaning)
          : trans.__('Xid %1 (process %2): %3', code, pid, meaning);
      return words('warn', text, event.advice);
    }
    case 'ecc_errors':
      return eccWords(event.corrected, event.uncorrected);
    case 'condition_began':
      return words(severityLevel(event.severity), event.text);
    case 'condition_ended':
      return words(
        'quiet',
        event.condition === 'xid' ? trans.__('Over: Xid %1.', event.code) : trans.__('Over: %1', event.text),
      );
    case 'process_started':
      return words('quiet', trans.__('%1 started.', processWords(event)));
    case 'process_ended':
      return words('quiet', trans.__('%1 ended.', processWords(event)));
    case 'mig_changed':
      return words('note', trans.__('MIG was switched on or off, or its instances changed.'));
    case 'power_source_changed':
      return words('note', trans.__("The board's power supply changed, as between battery and mains."));
    case 'run_began':
      return words('quiet', trans.__('Run of %1 began.', event.title));
    case 'run_ended':
      return runEnd(event);
    // Steps of runs are on charts alone.
    default:
      return null;
  }
}

function words(level: Level, text: string, more = ''): EventWords {
  return { level, text, more };
}

function runEnd({ title, status }: Run): EventWords {
  switch (status) {
    case 'failed':
      return words('warn', trans.__('Run of %1 failed.', title));
    case 'cancelled':
      return words('quiet', trans.__('Run of %1 was cancelled.', title));
    case 'lost':
      return words('warn', trans.__('Run of %1 fell silent before its end.', title));
    default:
      return words('quiet', trans.__('Run of %1 is done.', title));
  }
}

function eccWords(corrected: number, uncorrected: number): EventWords {
  if (uncorrected === 0) {
    return words(
      'note',
      trans._n(
        '%1 memory error was corrected by the hardware.',
        '%1 memory errors were corrected by the hardware.',
        corrected,
      ),
    );
  }
  const wrong = trans._n('%1 memory error was not corrected.', '%1 memory errors were not corrected.', uncorrected);
  const mended = trans._n('%1 memory error was corrected.', '%1 memory errors were corrected.', corrected);
  return words(
    'act',
    corrected === 0 ? wrong : `${wrong} ${mended}`,
    trans.__('What was computed with them is wrong: run it again.'),
  );
}

/** `train.py (ana, PID 4711)`. */
function processWords(process: ProcessRef): string {
  const user = valueOf(process.user);
  const name = valueOf(process.name) ?? trans.__('A process');
  return user === null
    ? trans.__('%1 (PID %2)', name, process.pid)
    : trans.__('%1 (%2, PID %3)', name, user, process.pid);
}
