/**
 * Numbers as people read them: a unit always, three significant digits at most, and one unit per kind of place, so
 * that a value never jumps. The space between number and unit does not break.
 */

import { memoryUnitBytes, units } from './units';

const SPACE = '\u00a0';

export const DASH = '–';

/** Three significant digits, and no more than two after the point: `0.41`, `4.81`, `61.0`, `140`, `1,980`. */
export function significant(value: number): string {
  const size = Math.abs(value);
  const digits = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return thousands(value.toFixed(digits));
}

/** The marks of an axis, all with one unit and as many decimals as their distance needs: `0.0 GB/s`, `0.5 GB/s`. */
export function axisTicks(values: readonly number[], scale: number, unit: string): string[] {
  const [first = 0, second = first] = values;
  const step = Math.abs(second - first || first) / scale;
  const digits = step > 0 ? Math.min(6, Math.max(0, Math.ceil(-Math.log10(step) - 1e-9))) : 0;
  return values.map((value) =>
    `${thousands((value / scale).toFixed(digits))}${SPACE}${unit}`.trim(),
  );
}

/** `96 %`, from 0 to 100. */
export function percent(value: number): string {
  return `${Math.round(value)}${SPACE}%`;
}

export function count(value: number): string {
  return thousands(value.toFixed(0));
}

/** The number alone of a memory size, in GiB or what else was chosen: `61.0`. */
export function memoryNumber(bytes: number): string {
  return bytes === 0 ? '0' : significant(bytes / memoryUnitBytes());
}

export function memorySize(bytes: number): string {
  return `${memoryNumber(bytes)}${SPACE}${units().memory}`;
}

/** What stands behind the number of memory in use: `/ 140 GiB`, or the unit alone where the total is not known. */
export function memoryTotal(bytes: number | null): string {
  return bytes === null ? units().memory : `/ ${memorySize(bytes)}`;
}

/**
 * Memory in use and its total in a short form of constant width: `73` and `/ 140 GiB`. Both are
 * whole numbers, unless the total has only one digit.
 */
export function memoryShare(used: number, total: number | null): { main: string; rest: string } {
  const unit = memoryUnitBytes();
  const format = (total ?? used) / unit < 9.95 ? significant : count;
  const outOf = total === null ? '' : `/ ${format(total / unit)}${SPACE}`;
  return { main: format(used / unit), rest: `${outOf}${units().memory}` };
}

/** Memory of any size, in a sentence: `184 MiB`, `61.0 GiB`. */
export function memoryAmount(bytes: number): string {
  const small = smallMemory();
  return bytes >= 1000 * small.bytes
    ? memorySize(bytes)
    : `${bytes === 0 ? '0' : significant(bytes / small.bytes)}${SPACE}${small.name}`;
}

/** Memory in a column: one decimal of GiB, so that points align; MiB for what would be 0.0. */
export function memoryColumn(bytes: number): string {
  const unit = memoryUnitBytes();
  const small = smallMemory();
  return bytes !== 0 && bytes < 0.05 * unit
    ? `${count(Math.max(1, bytes / small.bytes))}${SPACE}${small.name}`
    : `${(bytes / unit).toFixed(1)}${SPACE}${units().memory}`;
}

/** MiB beside GiB, MB beside GB. */
function smallMemory(): { name: string; bytes: number } {
  const { memory } = units();
  return memory === 'GiB' ? { name: 'MiB', bytes: 1024 ** 2 } : { name: 'MB', bytes: 1e6 };
}

export function watts(value: number): string {
  return `${count(value)}${SPACE}W`;
}

/** A temperature in the unit that was chosen. */
export function degrees(celsius: number): number {
  return units().temperature === '°C' ? celsius : celsius * 1.8 + 32;
}

export function celsius(value: number): string {
  return `${degrees(value).toFixed(0)}${SPACE}${units().temperature}`;
}

/** Between two temperatures. */
export function degreesBetween(celsius: number): number {
  return units().temperature === '°C' ? celsius : celsius * 1.8;
}

export function celsiusDifference(value: number): string {
  return `${degreesBetween(value).toFixed(0)}${SPACE}${units().temperature}`;
}

export function mhz(value: number): string {
  return `${count(value)}${SPACE}MHz`;
}

/** The unit of a rate, and its size in bytes per second: links and disks count in powers of ten. */
export function rateUnit(value: number): readonly [scale: number, unit: string] {
  return value >= 0.9995e9 ? [1e9, 'GB/s'] : value >= 0.9995e6 ? [1e6, 'MB/s'] : [1e3, 'kB/s'];
}

/** `12.4 MB/s`. */
export function bytesPerSecond(value: number): string {
  const [scale, unit] = rateUnit(value);
  return `${value === 0 ? '0' : significant(value / scale)}${SPACE}${unit}`;
}

/** How long, in the largest fitting unit: `7 s`, `26 min`, `2 h 14 min`, `6 d 2 h`, and `1 h` to the minute. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) {
    return `${seconds}${SPACE}s`;
  }
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) {
    return `${minutes}${SPACE}min`;
  }
  const hours = Math.floor(minutes / 60);
  if (hours < 24) {
    return withRest(hours, 'h', minutes % 60, 'min');
  }
  return withRest(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

function withRest(value: number, unit: string, rest: number, restUnit: string): string {
  return `${value}${SPACE}${unit}${rest === 0 ? '' : ` ${rest}${SPACE}${restUnit}`}`;
}

/** How long something took, to three digits: `80 ms`, `12.4 s`; from two minutes on as a duration. */
export function precise(ms: number): string {
  if (ms < 999.5) {
    return `${Math.round(ms)}${SPACE}ms`;
  }
  return ms < 120_000 ? `${significant(ms / 1000)}${SPACE}s` : duration(ms);
}

/** `5.50 µs`, `12.4 ms`. */
export function microseconds(us: number): string {
  if (us >= 999_500) {
    return precise(us / 1000);
  }
  return us < 999.5 ? `${significant(us)}${SPACE}µs` : `${significant(us / 1000)}${SPACE}ms`;
}

/** `4.02 TFLOP/s`; `unit` is what is counted. */
export function operationsPerSecond(value: number, unit: 'OP' | 'FLOP'): string {
  const [scale, prefix] =
    value >= 0.9995e12 ? [1e12, 'T'] : value >= 0.9995e9 ? [1e9, 'G'] : [1e6, 'M'];
  return `${significant(value / scale)}${SPACE}${prefix}${unit}/s`;
}

export function kilowattHours(joules: number): string {
  return `${significant(joules / 3.6e6)}${SPACE}kWh`;
}

/** The unit of an energy, and its size in joules. */
export function energyUnit(joules: number): readonly [scale: number, unit: string] {
  return joules >= 0.9995e6 ? [1e6, 'MJ'] : joules >= 999.5 ? [1e3, 'kJ'] : [1, 'J'];
}

/** `420 J`, `6.10 kJ`, `1.20 MJ`. */
export function energy(joules: number): string {
  const [scale, unit] = energyUnit(joules);
  return `${significant(joules / scale)}${SPACE}${unit}`;
}

/** A span of time for a countdown or an interval: `0.1 s`, `1 s`, `15 s`. */
export function seconds(ms: number): string {
  return `${String(ms < 1000 ? Math.round(ms / 100) / 10 : Math.round(ms / 1000))}${SPACE}s`;
}

/** The time of day, `10:42:07`, in the reader's zone. */
export function timeOfDay(atMs: number): string {
  const date = new Date(atMs);
  return [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map((n) => String(n).padStart(2, '0'))
    .join(':');
}

/** The time of day without seconds, `10:42`. */
export function hourAndMinute(atMs: number): string {
  return timeOfDay(atMs).slice(0, 5);
}

/** The day, `Nov 24`, in the words of the reader's browser. */
export function dayOfMonth(atMs: number): string {
  return new Date(atMs).toLocaleDateString(undefined, { month: 'short', day: 'numeric' });
}

/** When something began: the time of day, with the date where it was not today. */
export function since(atMs: number, nowMs: number): string {
  const isToday = new Date(atMs).toDateString() === new Date(nowMs).toDateString();
  return isToday ? timeOfDay(atMs) : dateAndTime(atMs);
}

/** Date and time of day, `2026-11-23 10:42:07`, in the reader's zone. */
export function dateAndTime(atMs: number): string {
  const then = new Date(atMs);
  const day = [then.getFullYear(), then.getMonth() + 1, then.getDate()]
    .map((n) => String(n).padStart(2, '0'))
    .join('-');
  return `${day} ${timeOfDay(atMs)}`;
}

function thousands(digits: string): string {
  return digits.replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, ',');
}
