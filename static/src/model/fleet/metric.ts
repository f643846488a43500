/** The metrics that the map can show as colors. */

import { DASH } from '../../lib/format';
import { trans } from '../../lib/translation';
import { MEMORY, PERCENT, UNITS, type Unit } from '../unit';
import { FIELDS, type Columns, type Measures, type Readings } from './columns';

/** The metrics with numeric values. */
export const NUMERIC_METRICS = ['utilization', 'memory', 'power', 'temperature'] as const;
export type NumericMetric = (typeof NUMERIC_METRICS)[number];
export const METRICS = [...NUMERIC_METRICS, 'state', 'conditions'] as const;
export type FleetMetric = (typeof METRICS)[number];

/**
 * The ends of the temperature scale. At the lower end, a board is idle; at the upper end, it slows
 * down because of heat.
 */
const COOL_CELSIUS = 25;
const HOT_CELSIUS = 90;

interface MetricLook {
  unit: Unit;
  value: keyof Readings;
  limit: keyof Readings | null;
}

export const LOOKS: Record<NumericMetric, MetricLook> = {
  utilization: {
    unit: PERCENT,
    value: 'utilization',
    limit: null,
  },
  memory: {
    unit: MEMORY,
    value: 'memoryUsed',
    limit: 'memoryTotal',
  },
  power: {
    unit: UNITS.watts,
    value: 'power',
    limit: 'powerLimit',
  },
  temperature: {
    unit: UNITS.celsius,
    value: 'temperature',
    limit: null,
  },
};

export function isMetric(text: string | null): text is FleetMetric {
  return METRICS.some((metric) => metric === text);
}

export function isNumeric(metric: FleetMetric): metric is NumericMetric {
  return metric in LOOKS;
}

export function metricLabel(metric: FleetMetric): string {
  return {
    utilization: trans.__('Utilization'),
    memory: trans.__('Memory'),
    power: trans.__('Power'),
    temperature: trans.__('Temperature'),
    state: trans.__('State'),
    conditions: trans.__('Conditions'),
  }[metric];
}

/**
 * Returns the value of a row as a share from 0 to 1 for colors and meters, or NaN if it is unknown.
 */
export function readingShare({ readings }: Measures, metric: NumericMetric, row: number): number {
  const { value, limit } = LOOKS[metric];
  const reading = readings[value][row] ?? NaN;
  if (metric === 'temperature') {
    return clampShare((reading - COOL_CELSIUS) / (HOT_CELSIUS - COOL_CELSIUS));
  }
  return clampShare(reading / (limit === null ? 100 : (readings[limit][row] ?? NaN)));
}

/** Returns the labels of both ends of the color scale. */
export function scaleEnds(metric: NumericMetric): [low: string, high: string] {
  if (metric === 'temperature') {
    return [UNITS.celsius.text(COOL_CELSIUS), UNITS.celsius.text(HOT_CELSIUS)];
  }
  return [
    PERCENT.text(0),
    metric === 'power' ? trans.__('%1 of the limit', PERCENT.text(100)) : PERCENT.text(100),
  ];
}

/** Returns a reading as text such as `78.2 / 140 GiB`, or a dash if it is unknown. */
export function readingText(
  { readings }: Measures,
  metric: NumericMetric,
  row: number,
  unit = LOOKS[metric].unit,
): string {
  const { value, limit } = LOOKS[metric];
  const of = limit === null ? NaN : (readings[limit][row] ?? NaN);
  return valueText(unit, readings[value][row] ?? NaN, of);
}

/** Returns why a reading is missing for all GPUs, or `undefined` if the reason is not known. */
export function explainMissingReading({ fleet }: Columns, metric: FleetMetric): string | undefined {
  return fleet.missing[isNumeric(metric) ? FIELDS[LOOKS[metric].value] : metric];
}

export function valueText(unit: Unit, value: number, limit = NaN): string {
  if (Number.isNaN(value)) {
    return DASH;
  }
  return Number.isNaN(limit) ? unit.text(value) : `${unit.number(value)} / ${unit.text(limit)}`;
}

function clampShare(share: number): number {
  return Math.min(1, Math.max(0, share));
}
