/**
 * Numbers in the user's language, with a unit and at most three significant digits. Each kind of
 * value uses one unit wherever it is displayed, so that values do not jump. The user chooses the
 * units of memory and temperatures, and the server reports the price of energy. The space before a
 * unit is a no-break space.
 */

import type { EnergyPrice } from '../wire';

export interface Units {
  memory: 'GiB' | 'GB';
  temperature: '°C' | '°F';
}

let chosen: Readonly<Units> = { memory: 'GiB', temperature: '°C' };

/** Sets the units. Views that show values must be redrawn. */
export function chooseUnits(units: Units): void {
  chosen = units;
}

export function units(): Readonly<Units> {
  return chosen;
}

let energyPrice: EnergyPrice | null = null;

/** Sets the price for all energy costs; `null` if it is unknown. */
export function setEnergyPrice(next: EnergyPrice | null): void {
  energyPrice = next;
}

export function memoryUnitBytes(): number {
  return chosen.memory === 'GiB' ? 1024 ** 3 : 1e9;
}

const KWH_JOULES = 3.6e6;
const SPACE = '\u00a0';

export const DASH = '–';

/** Latin digits in all languages, because numbers from the server such as PIDs also use them. */
const DIGITS = { numberingSystem: 'latn' } as const;
/**
 * Times use the 24-hour clock in every language, so that they have the same width and match logs.
 */
const CLOCK = { ...DIGITS, hourCycle: 'h23', hour: '2-digit', minute: '2-digit' } as const;
const DAY = { ...DIGITS, month: 'short', day: 'numeric' } as const;

/** The languages that are written from right to left. */
const RIGHT_TO_LEFT = /^(ar|fa|he|iw|ps|ur|yi)\b/;

interface Formats {
  /**
   * Whether values must be isolated, so that right-to-left text around them does not change their
   * order.
   */
  isRightToLeft: boolean;
  /** The number formats by number of decimals. */
  decimals: Intl.NumberFormat[];
  second: Intl.DateTimeFormat;
  minute: Intl.DateTimeFormat;
  day: Intl.DateTimeFormat;
  date: Intl.DateTimeFormat;
}

let locale: string | undefined;
let made: Formats | null = null;

/**
 * Sets the language of numbers and dates, such as `pt-BR`. `undefined` selects the browser's
 * language.
 */
export function setLocale(language: string | undefined): void {
  locale = language;
  made = null;
}

function localeFormats(): Formats {
  if (made !== null) {
    return made;
  }
  const second = new Intl.DateTimeFormat(locale, { ...CLOCK, second: '2-digit' });
  return (made = {
    isRightToLeft: RIGHT_TO_LEFT.test(second.resolvedOptions().locale),
    decimals: [],
    second,
    minute: new Intl.DateTimeFormat(locale, CLOCK),
    day: new Intl.DateTimeFormat(locale, DAY),
    date: new Intl.DateTimeFormat(locale, { ...DAY, year: 'numeric' }),
  });
}

/**
 * Returns a number with its unit. The number and the unit keep their order in right-to-left text.
 */
export function withUnit(number: string | number, unit: string): string {
  const value = `${number}${SPACE}${unit}`;
  return localeFormats().isRightToLeft ? `\u2066${value}\u2069` : value;
}

/**
 * Splits a value from `withUnit` into number and unit. The number may contain spaces between
 * thousands.
 */
export function splitUnit(value: string): [number: string, unit: string] {
  const plain = value.replace(/[\u2066\u2069]/g, '');
  const end = plain.lastIndexOf(SPACE);
  return end < 0 ? [plain, ''] : [plain.slice(0, end), plain.slice(end + 1)];
}

/** Returns a number with this many decimals, such as `1,980.5`. */
export function formatDecimal(value: number, digits: number): string {
  const format = (localeFormats().decimals[digits] ??= new Intl.NumberFormat(locale, {
    ...DIGITS,
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
    signDisplay: 'negative',
  }));
  return format.format(value);
}

/**
 * Returns a number with three significant digits and at most two decimals, such as `0.41`, `4.81`,
 * `61.0`, `140` or `1,980`.
 */
export function formatSignificant(value: number): string {
  const size = Math.abs(value);
  const digits = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return formatDecimal(value, digits);
}

/**
 * Returns the labels of an axis. All have the same unit, and as many decimals as are needed to
 * distinguish adjacent labels: `0.0 GB/s`, `0.5 GB/s`.
 */
export function formatAxisTicks(values: readonly number[], scale: number, unit: string): string[] {
  const [first = 0, second = first] = values;
  const step = Math.abs(second - first || first) / scale;
  const digits = step > 0 ? Math.min(6, Math.max(0, Math.ceil(-Math.log10(step) - 1e-9))) : 0;
  return values.map((value) =>
    unit === ''
      ? formatDecimal(value / scale, digits)
      : withUnit(formatDecimal(value / scale, digits), unit),
  );
}

/** Returns a percentage from 0 to 100, such as `96 %`. */
export function formatPercent(value: number): string {
  return withUnit(formatCount(value), '%');
}

export function formatCount(value: number): string {
  return formatDecimal(value, 0);
}

/** Returns a memory size without its unit, in GiB or the unit that the user chose: `61.0`. */
export function formatMemoryNumber(bytes: number): string {
  return bytes === 0 ? '0' : formatSignificant(bytes / memoryUnitBytes());
}

export function formatMemorySize(bytes: number): string {
  return withUnit(formatMemoryNumber(bytes), units().memory);
}

/**
 * Returns the text that follows the amount of memory in use: `/ 140 GiB`, or only the unit if the
 * total is unknown.
 */
export function formatMemoryTotal(bytes: number | null): string {
  return bytes === null ? units().memory : `/ ${formatMemorySize(bytes)}`;
}

/**
 * Returns the memory in use and the total in a short form whose width does not change: `73` and `/
 * 140 GiB`. Both are whole numbers, unless the total has only one digit.
 */
export function formatMemoryShare(
  used: number,
  total: number | null,
): { main: string; rest: string } {
  const unit = memoryUnitBytes();
  const format = (total ?? used) / unit < 9.95 ? formatSignificant : formatCount;
  const outOf = total === null ? '' : `/ ${format(total / unit)}${SPACE}`;
  return { main: format(used / unit), rest: `${outOf}${units().memory}` };
}

/** Returns a memory size of any magnitude for a sentence: `184 MiB`, `61.0 GiB`. */
export function formatMemoryAmount(bytes: number): string {
  const small = smallMemoryUnit();
  return bytes >= 1000 * small.bytes
    ? formatMemorySize(bytes)
    : withUnit(bytes === 0 ? '0' : formatSignificant(bytes / small.bytes), small.name);
}

/**
 * Returns a memory size for a table column. It is in GiB with one decimal, so that decimal points
 * align. A size above 0 that would be shown as 0.0 GiB is in MiB.
 */
export function formatMemoryColumn(bytes: number): string {
  const unit = memoryUnitBytes();
  const small = smallMemoryUnit();
  return bytes !== 0 && bytes < 0.05 * unit
    ? withUnit(formatCount(Math.max(1, bytes / small.bytes)), small.name)
    : withUnit(formatDecimal(bytes / unit, 1), units().memory);
}

/** Returns MiB if the memory unit is GiB, and MB if it is GB. */
function smallMemoryUnit(): { name: string; bytes: number } {
  const { memory } = units();
  return memory === 'GiB' ? { name: 'MiB', bytes: 1024 ** 2 } : { name: 'MB', bytes: 1e6 };
}

export function formatWatts(value: number): string {
  return withUnit(formatCount(value), 'W');
}

/** Converts a temperature to the unit that the user chose. */
export function convertTemperature(celsius: number): number {
  return units().temperature === '°C' ? celsius : celsius * 1.8 + 32;
}

export function formatTemperature(value: number): string {
  return withUnit(formatCount(convertTemperature(value)), units().temperature);
}

/** Converts the difference of two temperatures to the unit that the user chose. */
export function convertTemperatureDifference(celsius: number): number {
  return units().temperature === '°C' ? celsius : celsius * 1.8;
}

export function formatTemperatureDifference(value: number): string {
  return withUnit(formatCount(convertTemperatureDifference(value)), units().temperature);
}

export function formatMegahertz(value: number): string {
  return withUnit(formatCount(value), 'MHz');
}

/**
 * Returns the unit of a rate and its size in bytes per second. Links and disks use powers of ten.
 */
export function rateUnit(value: number): readonly [scale: number, unit: string] {
  return value >= 0.9995e9 ? [1e9, 'GB/s'] : value >= 0.9995e6 ? [1e6, 'MB/s'] : [1e3, 'kB/s'];
}

/** Returns a rate such as `12.4 MB/s`. */
export function formatBytesPerSecond(value: number): string {
  const [scale, unit] = rateUnit(value);
  return withUnit(value === 0 ? '0' : formatSignificant(value / scale), unit);
}

/**
 * Returns a duration in the largest suitable unit: `7 s`, `26 min`, `2 h 14 min`, `6 d 2 h`, and `1
 * h` for a full hour.
 */
export function formatDuration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) {
    return withUnit(seconds, 's');
  }
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) {
    return withUnit(minutes, 'min');
  }
  const hours = Math.floor(minutes / 60);
  if (hours < 24) {
    return formatInTwoUnits(hours, 'h', minutes % 60, 'min');
  }
  return formatInTwoUnits(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

function formatInTwoUnits(value: number, unit: string, rest: number, restUnit: string): string {
  return rest === 0 ? withUnit(value, unit) : withUnit(`${value}${SPACE}${unit} ${rest}`, restUnit);
}

/**
 * Returns an elapsed time with three digits: `80 ms`, `12.4 s`. From two minutes on, it is
 * formatted like other durations.
 */
export function formatPreciseDuration(ms: number): string {
  if (ms < 999.5) {
    return withUnit(Math.round(ms), 'ms');
  }
  return ms < 120_000 ? withUnit(formatSignificant(ms / 1000), 's') : formatDuration(ms);
}

/** Returns a time such as `5.50 µs` or `12.4 ms`. */
export function formatMicroseconds(us: number): string {
  if (us >= 999_500) {
    return formatPreciseDuration(us / 1000);
  }
  return us < 999.5
    ? withUnit(formatSignificant(us), 'µs')
    : withUnit(formatSignificant(us / 1000), 'ms');
}

/** Returns a rate such as `4.02 TFLOP/s`. `unit` is the counted operation. */
export function formatOperationsPerSecond(value: number, unit: 'OP' | 'FLOP'): string {
  const [scale, prefix] =
    value >= 0.9995e12 ? [1e12, 'T'] : value >= 0.9995e9 ? [1e9, 'G'] : [1e6, 'M'];
  return withUnit(formatSignificant(value / scale), `${prefix}${unit}/s`);
}

export function formatKilowattHours(joules: number): string {
  return withUnit(formatSignificant(joules / KWH_JOULES), 'kWh');
}

/** Returns the unit of an energy and its size in joules. */
export function energyUnit(joules: number): readonly [scale: number, unit: string] {
  return joules >= 0.9995e6 ? [1e6, 'MJ'] : joules >= 999.5 ? [1e3, 'kJ'] : [1, 'J'];
}

/** Returns an energy such as `420 J`, `6.10 kJ` or `1.20 MJ`. */
export function formatEnergy(joules: number): string {
  const [scale, unit] = energyUnit(joules);
  return withUnit(formatSignificant(joules / scale), unit);
}

/** Returns a cost such as `0.42 EUR`, or `null` if the price is unknown. */
export function energyCost(joules: number): string | null {
  if (energyPrice === null || !Number.isFinite(joules)) {
    return null;
  }
  const { per_kwh, before, after } = energyPrice;
  const text = formatCostNumber((joules / KWH_JOULES) * per_kwh);
  return before === '' && after === '' ? `cost ${text}` : `${before}${text}${after}`;
}

/** Returns text such as `6.10 kJ (0.42 EUR)`, or only the amount if the price is unknown. */
export function appendEnergyCost(amount: string, joules: number, isLowerBound = false): string {
  const cost = energyCost(joules);
  return cost === null ? amount : `${amount} (${markLowerBound(cost, isLowerBound)})`;
}

function formatCostNumber(cost: number): string {
  if (cost > 0 && cost < 0.0001) {
    return `<${formatDecimal(0.0001, 4)}`;
  }
  return formatDecimal(cost, cost === 0 || cost >= 0.1 ? 2 : cost >= 0.001 ? 3 : 4);
}

/** Marks an amount with `≥` if it is a lower bound, because part of it could not be read. */
export function markLowerBound(text: string, isLowerBound: boolean): string {
  return isLowerBound && text !== DASH ? `≥${SPACE}${text}` : text;
}

/** Returns a time for a countdown or an interval: `0.1 s`, `1 s`, `15 s`. */
export function formatSeconds(ms: number): string {
  const tenths = ms < 1000 ? Math.round(ms / 100) : Math.round(ms / 1000) * 10;
  return withUnit(formatDecimal(tenths / 10, tenths % 10 === 0 ? 0 : 1), 's');
}

/** Returns the time of day in the user's time zone, such as `10:42:07`. */
export function formatTimeOfDay(atMs: number): string {
  return localeFormats().second.format(atMs);
}

/** Returns the time of day without seconds, such as `10:42`. */
export function formatHourAndMinute(atMs: number): string {
  return localeFormats().minute.format(atMs);
}

/** Returns the day and month, such as `Nov 24`. */
export function formatDayOfMonth(atMs: number): string {
  return localeFormats().day.format(atMs);
}

/** Returns the time of day, and also the date if the time is not today. */
export function formatTimeWithDateUnlessToday(
  atMs: number,
  nowMs: number,
  time = formatTimeOfDay,
): string {
  const isToday = new Date(atMs).toDateString() === new Date(nowMs).toDateString();
  return isToday ? time(atMs) : formatDateAndTime(atMs, time);
}

/** Returns the date and time of day in the user's time zone, such as `Nov 23, 2026 10:42:07`. */
export function formatDateAndTime(atMs: number, time = formatTimeOfDay): string {
  return `${localeFormats().date.format(atMs)} ${time(atMs)}`;
}
