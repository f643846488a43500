import { useMemo } from 'preact/hooks';

import { computeUnzoomedAxis } from '../../chart/axis';
import type { ChartContent } from '../../chart/content';
import { units } from '../../lib/format';
import { memoryUnit, powerUnit } from '../../model/fleet/totals';
import type { Color } from '../../model/metric';
import { PERCENT, UNITS, type Unit } from '../../model/unit';
import type { FleetHistory } from '../../wire';
import { ChartCanvas } from '../chart-canvas';
import { colorOf, type Palette } from '../palette';
import type { Scene } from './scene';

/** If values are at least this many steps apart, the line has a gap between them. */
const GAP_STEPS = 2.5;

/** A reading over time. */
interface TrendKind {
  id: string;
  /** The field ID of the limit. */
  limit?: string;
  color: Color;
  /** Returns the unit in which values up to `most` are shown. */
  unitFor: (most: number) => Unit;
}

export const TRENDS = {
  utilization: {
    id: 'utilization.gpu_percent',
    color: 'utilization',
    unitFor: () => PERCENT,
  },
  memory: {
    id: 'memory.used_bytes',
    limit: 'memory.total_bytes',
    color: 'memory',
    unitFor: memoryUnit,
  },
  power: { id: 'power.draw_watts', color: 'power', unitFor: powerUnit },
  held: { id: 'gpus_held', limit: 'gpus', color: 'utilization', unitFor: () => UNITS.count },
} satisfies Record<string, TrendKind>;

/**
 * A reading over the selected time range, for all nodes or for one node. The space is reserved even
 * if there are no values.
 */
export function Trend({
  kind,
  scene: { palette },
  history,
}: {
  kind: keyof typeof TRENDS;
  scene: Scene;
  /** The history; `null` until it has been loaded. */
  history: FleetHistory | null;
}) {
  const content = useMemo(
    () => (history === null ? null : makeChartContent(history, kind, palette)),
    [history, kind, palette, units()],
  );
  return content === null ? (
    <div class="gpumon-fleet-trend" />
  ) : (
    <ChartCanvas class="gpumon-fleet-trend" content={content} isTracked={false} />
  );
}

/** Returns the values of a reading, or `null` if all are missing. */
export function valuesOf(
  history: FleetHistory,
  id: string | undefined,
): readonly (number | null)[] | null {
  const values = history.series.find((series) => series.id === id)?.values;
  return values?.some((value) => value !== null) === true ? values : null;
}

function makeChartContent(
  history: FleetHistory,
  kind: keyof typeof TRENDS,
  palette: Palette,
): ChartContent | null {
  const { id, limit: limitId, color, unitFor }: TrendKind = TRENDS[kind];
  const values = valuesOf(history, id);
  const [from_ms, second_ms] = history.at_ms;
  const to_ms = history.at_ms.at(-1);
  if (values === null || from_ms === undefined || second_ms === undefined || to_ms === undefined) {
    return null;
  }
  const window = {
    times_ms: Float64Array.from(history.at_ms),
    revision: to_ms,
    from_ms,
    to_ms,
    gap_ms: GAP_STEPS * (second_ms - from_ms),
  };
  const lines = [
    { values: Float64Array.from(values, (value) => value ?? NaN), color: colorOf(palette, color) },
  ];
  const limit = valuesOf(history, limitId)?.findLast((value) => value !== null) ?? null;
  const unit = unitFor(Math.max(limit ?? 0, ...values.map((value) => value ?? 0)));
  const [floor, ceiling] = computeUnzoomedAxis(unit, limit, lines, window);
  return { axis: unit, style: palette, window, lines, floor, ceiling, at_ms: null };
}
