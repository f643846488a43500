/** The charts of a dashboard and their order. */

import { COMPARED, GPU_CHARTS, gpuCharts, HOST_CHARTS, hostCharts } from './kinds';
import { MIG } from '../metric';
import type { DashboardState } from './state';

/** Whether GPUs are shown each by itself. */
export function isApart({ layout }: DashboardState, gpus: number): boolean {
  return layout === 'apart' || gpus < 2;
}

/**
 * The charts of so many GPUs and the machine, in their order. Overlaid charts are of one reading
 * each.
 */
export function chartsOf(state: DashboardState, gpus: number): readonly string[] {
  if (isApart(state, gpus)) {
    return (
      state.charts ?? [...GPU_CHARTS.map(({ id }) => id), MIG, ...HOST_CHARTS.map(({ id }) => id)]
    );
  }
  if (state.charts === null) {
    return [...COMPARED, ...HOST_CHARTS.map(({ id }) => id)];
  }
  const single = state.charts.flatMap((id) => {
    const [of] = gpuCharts([id]);
    return of === undefined ? [id] : of.metrics.map((metric) => metric.id);
  });
  return [...new Set(single)];
}

/**
 * With `chart` before or after `target`; charts of GPUs and of the machine stay among their own.
 */
export function placed(
  charts: readonly string[],
  chart: string,
  target: string,
  after: boolean,
): readonly string[] {
  if (chart === target || isOfHost(chart) !== isOfHost(target)) {
    return charts;
  }
  const others = charts.filter((id) => id !== chart);
  const place = others.indexOf(target) + (after ? 1 : 0);
  return [...others.slice(0, place), chart, ...others.slice(place)];
}

/** With `chart` one place further on, or back where `step` is negative. */
export function stepped(charts: readonly string[], chart: string, step: 1 | -1): readonly string[] {
  const own = charts.filter((id) => isOfHost(id) === isOfHost(chart));
  const neighbor = own[own.indexOf(chart) + step];
  return neighbor === undefined ? charts : placed(charts, chart, neighbor, step > 0);
}

function isOfHost(id: string): boolean {
  return hostCharts([id]).length > 0;
}
