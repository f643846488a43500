/** Taking readings apart. */

import type { Absence, Reading } from '../wire';

/** A value with the time at which it was taken. */
interface Dated<T> {
  value: T;
  at_ms: number;
}

/** Why there is no value; `null` where there is one. */
export function absenceOf<T>(reading: Reading<T> | null | undefined): Absence | null {
  return isObject(reading) && 'absent' in reading ? reading : null;
}

/** The value, however old; `null` where there is none, or nothing was read. */
export function valueOf<T>(reading: Reading<T> | null | undefined): T | null {
  if (reading === null || reading === undefined || absenceOf(reading) !== null) {
    return null;
  }
  return isDated(reading) ? reading.value : (reading as T);
}

/** When a reading was taken, where that was earlier than the sample around it; else `null`. */
export function takenAt<T>(reading: Reading<T>): number | null {
  return isDated(reading) ? reading.at_ms : null;
}

function isDated<T>(reading: Reading<T>): reading is Dated<T> {
  return isObject(reading) && 'at_ms' in reading && 'value' in reading;
}

function isObject(reading: unknown): reading is object {
  return typeof reading === 'object' && reading !== null && !Array.isArray(reading);
}
