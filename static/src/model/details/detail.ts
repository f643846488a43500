/** A detail of a GPU: its label and value. */

import { trans } from '../../lib/translation';
import type { Absence, Board, GpuDetails, Reading, Vendor } from '../../wire';
import { GPU_FIELDS } from '../../wire/fields';
import type { GpuState } from '../gpu';
import { absenceOf, readingTime, valueOf } from '../reading';
import type { Level } from '../describe';

export interface Detail {
  /** The path of the reading in the API. */
  id: string;
  /** The label. It is a function if the label depends on the GPU. */
  label: string | ((gpu: GpuState) => string);
  /** The vendor whose GPUs have the detail, if the GPUs of other vendors do not have it. */
  only?: Vendor;
  /** Returns the formatted reading, or `null` before its frame has arrived. */
  read: (gpu: GpuState) => Reading<string> | null;
  /** Returns the text that follows the value, such as its limit. */
  rest?: (gpu: GpuState) => string;
  /** Returns the severity of the value, for details that can be a problem. */
  level?: (gpu: GpuState) => Level;
}

export interface DetailGroup {
  title: string;
  details: readonly Detail[];
  /** Paragraphs about the details. */
  notes?: readonly string[];
}

export const UNKNOWN: Absence = { absent: 'unknown' };

/** Formats the value of a reading, and keeps its time or the reason why the value is missing. */
export function formatReading<T>(
  reading: Reading<T>,
  format: (value: T) => string,
): Reading<string> {
  const absence = absenceOf(reading);
  const value = valueOf(reading);
  if (absence !== null || value === null) {
    return absence ?? UNKNOWN;
  }
  const at_ms = readingTime(reading);
  return at_ms === null ? format(value) : { value: format(value), at_ms };
}

/** Returns the detail that shows a field of the catalog. Every sample contains these fields. */
export function fieldDetail(id: string, format: (value: number) => string): Detail {
  const { label, read } = GPU_FIELDS.find((one) => one.id === id) ?? {
    label: () => id,
    read: () => UNKNOWN,
  };
  return { id, label: label(), read: ({ now }) => now && formatReading(read(now), format) };
}

/** Returns the detail of a reading in the GPU's static properties. */
export function boardDetail<T>(
  id: string,
  label: string,
  read: (board: Board) => Reading<T>,
  format: (value: T) => string,
): Detail {
  return { id: `board.${id}`, label, read: ({ board }) => formatReading(read(board), format) };
}

/**
 * Returns the detail of a reading that the server updates only every ten seconds. Therefore the
 * detail includes the time of the reading.
 */
export function timestampedDetail<T>(
  id: string,
  label: Detail['label'],
  read: (details: GpuDetails) => Reading<T> | null,
  format: (value: T) => string,
  more: Pick<Detail, 'rest' | 'level' | 'only'> = {},
): Detail {
  return {
    id,
    label,
    read: ({ details }) => {
      const reading = details && read(details);
      if (details === null || reading === null) {
        return null;
      }
      const text = formatReading(reading, format);
      return typeof text === 'string' ? { value: text, at_ms: details.at_ms } : text;
    },
    ...more,
  };
}

/** Returns text such as `of 700 W`, or an empty text if the maximum is unknown. */
export function describeMaximum(max: Reading<number>, format: (value: number) => string): string {
  const value = valueOf(max);
  return value === null ? '' : trans.__('of %1', format(value));
}

/**
 * Combines several readings into one. Missing readings are left out. If all are missing, the result
 * is missing for the same reason as the first reading.
 */
export function combineReadings<T>(
  parts: readonly Reading<T>[],
  format: (values: readonly (T | null)[]) => string,
): Reading<string> {
  const values = parts.map(valueOf);
  if (values.some((value) => value !== null)) {
    return format(values);
  }
  const reasons = parts.map(absenceOf).filter((absence): absence is Absence => absence !== null);
  return reasons[0] ?? UNKNOWN;
}

export function formatOnOff(on: boolean): string {
  return on ? trans.__('on') : trans.__('off');
}
