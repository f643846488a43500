/** Events in sentences. */

import type { Event, ProcessRef } from '../wire';
import { severityLevel } from './condition';
import { valueOf } from './reading';
import type { Level } from './words';

/** What happened, and what to do about it or more of it; `more` is empty where there is nothing to add. */
interface EventWords {
  text: string;
  more: string;
  level: Level;
}

/** An event in words; `null` for one of a kind that a newer server knows. */
export function eventWords(event: Event): EventWords | null {
  switch (event.what) {
    case 'gpu_lost':
      return words('act', 'The GPU is lost: the driver says that it has fallen off the bus.');
    case 'gpu_hung':
      return words('act', 'The driver does not answer for this GPU.');
    case 'gpu_failed':
      return words('act', 'The driver refuses to open this GPU.');
    case 'gpu_asleep':
      return words('quiet', 'The system has switched the GPU off to save power.');
    case 'gpu_back':
      return words('quiet', 'The GPU answers again.');
    case 'xid': {
      const process = event.pid === undefined ? '' : ` (process ${String(event.pid)})`;
      return words('warn', `Xid ${String(event.code)}${process}: ${event.meaning}`, event.advice);
    }
    case 'ecc_errors':
      return eccWords(event.corrected, event.uncorrected);
    case 'condition_began':
      return words(severityLevel(event.severity), event.text);
    case 'condition_ended':
      return words('quiet', event.condition === 'xid' ? `Over: Xid ${String(event.code)}.` : `Over: ${event.text}`);
    case 'process_started':
      return words('quiet', `${processWords(event)} started.`);
    case 'process_ended':
      return words('quiet', `${processWords(event)} ended.`);
    case 'mig_changed':
      return words('note', 'MIG was switched on or off, or its instances changed.');
    case 'power_source_changed':
      return words('note', "The board's power supply changed, as between battery and mains.");
    default:
      return null;
  }
}

function words(level: Level, text: string, more = ''): EventWords {
  return { level, text, more };
}

function eccWords(corrected: number, uncorrected: number): EventWords {
  if (uncorrected === 0) {
    return words('note', `${memoryErrors(corrected)} corrected by the hardware.`);
  }
  const also = corrected === 0 ? '' : ` ${memoryErrors(corrected)} corrected.`;
  return words(
    'act',
    `${memoryErrors(uncorrected)} not corrected.${also}`,
    'What was computed with them is wrong: run it again.',
  );
}

function memoryErrors(count: number): string {
  return count === 1 ? '1 memory error was' : `${String(count)} memory errors were`;
}

/** `train.py (ana, PID 4711)`. */
function processWords(process: ProcessRef): string {
  const user = valueOf(process.user);
  const pid = `PID ${String(process.pid)}`;
  return `${valueOf(process.name) ?? 'A process'} (${user === null ? pid : `${user}, ${pid}`})`;
}
