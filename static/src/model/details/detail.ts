/** A detail of a GPU: its label, and how its value is read. */

import { trans } from '../../lib/translation';
import type { Absence, GpuDetails, GpuSample, Reading } from '../../wire';
import type { GpuView } from '../gpu';
import { absenceOf, takenAt, valueOf } from '../reading';
import type { Level } from '../describe';

export interface Detail {
  /** The path of the reading, for programs. */
  id: string;
  label: string;
  /** The formatted reading; `null` until its frame has arrived. */
  read: (gpu: GpuView) => Reading<string> | null;
  /** What the value is out of, or what belongs to it. */
  rest?: (gpu: GpuView) => string;
  /** How much the value matters; left out where it never does. */
  level?: (gpu: GpuView) => Level;
}

export interface DetailGroup {
  title: string;
  details: readonly Detail[];
}

/** A formatted reading, with its time or the reason of its absence. */
export function formatReading<T>(reading: Reading<T>, format: (value: T) => string): Reading<string> {
  const absence = absenceOf(reading);
  const value = valueOf(reading);
  if (absence !== null || value === null) {
    return absence ?? { absent: 'unknown' };
  }
  const at_ms = takenAt(reading);
  return at_ms === null ? format(value) : { value: format(value), at_ms };
}

/** One of the readings that come with every sample. */
export function now<T>(read: (now: GpuSample) => Reading<T>, format: (value: T) => string): Detail['read'] {
  return (gpu) => (gpu.now === null ? null : formatReading(read(gpu.now), format));
}

/** One of the readings that come every ten seconds, with the time at which they were taken. */
export function slow<T>(read: (details: GpuDetails) => Reading<T>, format: (value: T) => string): Detail['read'] {
  return ({ details }) => {
    if (details === null) {
      return null;
    }
    const reading = formatReading(read(details), format);
    return typeof reading === 'string' ? { value: reading, at_ms: details.at_ms } : reading;
  };
}

/** Several readings as one; what is absent is left out, and where all is, the first reason stands for them. */
export function together<T>(
  parts: readonly Reading<T>[],
  format: (values: readonly (T | null)[]) => string,
): Reading<string> {
  const values = parts.map(valueOf);
  if (values.some((value) => value !== null)) {
    return format(values);
  }
  const reasons = parts.map(absenceOf).filter((absence): absence is Absence => absence !== null);
  return reasons[0] ?? { absent: 'unknown' };
}

/** The parts that are there, one behind the other. */
export function list(parts: readonly (string | null)[]): string {
  return parts.filter((part) => part !== null && part !== '').join(' · ');
}

export function onOff(on: boolean): string {
  return on ? trans.__('on') : trans.__('off');
}
