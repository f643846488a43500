/** Accessors for readings. */

import type { Absence, Reading } from '../wire';

/** A value with the time of the reading. */
interface DatedValue<T> {
  value: T;
  at_ms: number;
}

/** Returns the reason why a reading has no value, or `null` if it has a value. */
export function absenceOf<T>(reading: Reading<T> | null | undefined): Absence | null {
  return isObject(reading) && 'absent' in reading ? reading : null;
}

/** Returns the value of a reading regardless of its age, or `null` if there is none. */
export function valueOf<T>(reading: Reading<T> | null | undefined): T | null {
  if (reading === null || reading === undefined || absenceOf(reading) !== null) {
    return null;
  }
  return isDated(reading) ? reading.value : (reading as T);
}

/** Returns the reading's time if it is older than its sample, otherwise `null`. */
export function readingTime<T>(reading: Reading<T>): number | null {
  return isDated(reading) ? reading.at_ms : null;
}

function isDated<T>(reading: Reading<T>): reading is DatedValue<T> {
  return isObject(reading) && 'at_ms' in reading && 'value' in reading;
}

function isObject(reading: unknown): reading is object {
  return typeof reading === 'object' && reading !== null && !Array.isArray(reading);
}
