/** What the cells of a heat map tell by their color. */

import { DASH } from '../../lib/format';
import { trans } from '../../lib/translation';
import type { Color } from '../metric';
import { MEMORY, PERCENT, UNITS, type Unit } from '../unit';
import { FIELDS, type Columns, type Measures, type Readings } from './columns';

export const METRICS = ['utilization', 'memory', 'power', 'temperature', 'conditions'] as const;
export type FleetMetric = (typeof METRICS)[number];
/** Those that are numbers. */
export type Measured = Exclude<FleetMetric, 'conditions'>;

/** Where the color of a temperature begins and ends: that of a board at rest, and where boards slow down. */
const COOL_CELSIUS = 25;
const HOT_CELSIUS = 90;

interface MetricLook {
  color: Color;
  unit: Unit;
  value: keyof Readings;
  limit: keyof Readings | null;
}

export const LOOKS: Record<Measured, MetricLook> = {
  utilization: {
    color: 'utilization',
    unit: PERCENT,
    value: 'utilization',
    limit: null,
  },
  memory: {
    color: 'memory',
    unit: MEMORY,
    value: 'memoryUsed',
    limit: 'memoryTotal',
  },
  power: {
    color: 'power',
    unit: UNITS.watts,
    value: 'power',
    limit: 'powerLimit',
  },
  temperature: {
    color: 'temperature',
    unit: UNITS.celsius,
    value: 'temperature',
    limit: null,
  },
};

export function isMetric(text: string | null): text is FleetMetric {
  return METRICS.some((metric) => metric === text);
}

export function metricLabel(metric: FleetMetric): string {
  return {
    utilization: trans.__('Utilization'),
    memory: trans.__('Memory'),
    power: trans.__('Power'),
    temperature: trans.__('Temperature'),
    conditions: trans.__('Conditions'),
  }[metric];
}

/** The value of a row from 0 to 1, as colors and meters show it; NaN where it is not known. */
export function shareOf({ readings }: Measures, metric: Measured, row: number): number {
  const { value, limit } = LOOKS[metric];
  const reading = readings[value][row] ?? NaN;
  if (metric === 'temperature') {
    return bounded((reading - COOL_CELSIUS) / (HOT_CELSIUS - COOL_CELSIUS));
  }
  return bounded(reading / (limit === null ? 100 : (readings[limit][row] ?? NaN)));
}

/** What stands at both ends of the scale. */
export function scaleEnds(metric: Measured): [low: string, high: string] {
  if (metric === 'temperature') {
    return [UNITS.celsius.text(COOL_CELSIUS), UNITS.celsius.text(HOT_CELSIUS)];
  }
  return [
    PERCENT.text(0),
    metric === 'power' ? trans.__('%1 of the limit', PERCENT.text(100)) : PERCENT.text(100),
  ];
}

/** A reading as it is written: `78.2 / 140 GiB`; a dash where it is not known. */
export function readingText(
  { readings }: Measures,
  metric: Measured,
  row: number,
  unit = LOOKS[metric].unit,
): string {
  const { value, limit } = LOOKS[metric];
  const of = limit === null ? NaN : (readings[limit][row] ?? NaN);
  return valueText(unit, readings[value][row] ?? NaN, of);
}

/** Why no GPU has a reading; `undefined` if there is no reason. */
export function missingText({ fleet }: Columns, metric: FleetMetric): string | undefined {
  return fleet.missing[metric === 'conditions' ? metric : FIELDS[LOOKS[metric].value]];
}

export function valueText(unit: Unit, value: number, limit = NaN): string {
  if (Number.isNaN(value)) {
    return DASH;
  }
  return Number.isNaN(limit) ? unit.text(value) : `${unit.number(value)} / ${unit.text(limit)}`;
}

/** Marks the text of an amount as a lower bound if some of the amount could not be read. */
export function atLeast(text: string, isLowerBound: boolean): string {
  return isLowerBound && text !== DASH ? `≥\u00a0${text}` : text;
}

function bounded(share: number): number {
  return Math.min(1, Math.max(0, share));
}
