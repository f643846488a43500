/** Taking readings apart. */

import type { Absence, Reading } from '../wire';

/** What a reading can hold. */
export type Readable = number | string | readonly unknown[];

/** Why there is no value; `null` where there is one. */
export function absenceOf<T extends Readable>(reading: Reading<T>): Absence | null {
  return isObject(reading) && 'absent' in reading ? reading : null;
}

/** The value, however old; `null` where there is none. */
export function valueOf<T extends Readable>(reading: Reading<T>): T | null {
  if (!isObject(reading)) {
    return reading;
  }
  return 'value' in reading ? (reading as { value: T }).value : null;
}

/** When a reading was taken, where that was earlier than the sample around it; else `null`. */
export function takenAt<T extends Readable>(reading: Reading<T>): number | null {
  return isObject(reading) && 'at_ms' in reading ? (reading as { at_ms: number }).at_ms : null;
}

function isObject(reading: unknown): reading is object {
  return typeof reading === 'object' && reading !== null && !Array.isArray(reading);
}
