/** A detail of a GPU: its label, and how its value is read. */

import { trans } from '../../lib/translation';
import type { Absence, GpuDetails, Reading, Vendor } from '../../wire';
import { GPU_FIELDS } from '../../wire/fields';
import type { GpuState } from '../gpu';
import { absenceOf, takenAt, valueOf } from '../reading';
import type { Level } from '../describe';

export interface Detail {
  /** The path of the reading, for programs. */
  id: string;
  /** A function if it is called differently on some GPUs. */
  label: string | ((gpu: GpuState) => string);
  /** The only vendor whose GPUs have it. */
  only?: Vendor;
  /** The formatted reading; `null` until its frame has arrived. */
  read: (gpu: GpuState) => Reading<string> | null;
  /** What the value is out of, or what belongs to it. */
  rest?: (gpu: GpuState) => string;
  /** How much the value matters; left out where it never does. */
  level?: (gpu: GpuState) => Level;
}

export interface DetailGroup {
  title: string;
  details: readonly Detail[];
}

export const UNKNOWN: Absence = { absent: 'unknown' };

/** A formatted reading, with its time or the reason of its absence. */
export function formatReading<T>(
  reading: Reading<T>,
  format: (value: T) => string,
): Reading<string> {
  const absence = absenceOf(reading);
  const value = valueOf(reading);
  if (absence !== null || value === null) {
    return absence ?? UNKNOWN;
  }
  const at_ms = takenAt(reading);
  return at_ms === null ? format(value) : { value: format(value), at_ms };
}

/** A field of the catalogue, which comes with every sample. */
export function field(id: string, format: (value: number) => string): Detail {
  const { label, read } = GPU_FIELDS.find((one) => one.id === id) ?? {
    label: () => id,
    read: () => UNKNOWN,
  };
  return { id, label: label(), read: ({ now }) => now && formatReading(read(now), format) };
}

/** One of the readings that come every ten seconds, with the time at which they were taken. */
export function slow<T>(
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

/** What a value is out of, where that is known. */
export function outOf(max: Reading<number>, format: (value: number) => string): string {
  const value = valueOf(max);
  return value === null ? '' : trans.__('of %1', format(value));
}

/**
 * Several readings as one; what is absent is left out, and where all is, the first reason stands
 * for them.
 */
export function together<T>(
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

export function onOff(on: boolean): string {
  return on ? trans.__('on') : trans.__('off');
}
