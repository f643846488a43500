/** The charts of a dashboard and their order. */

import { COMPARISON_CHARTS, GPU_CHARTS, gpuCharts, HOST_CHARTS, hostCharts } from './kinds';
import { ALL_MIG_METRICS } from '../metric';
import type { DashboardState } from './state';

/** Returns whether each GPU has its own charts. */
export function isSeparateLayout({ layout }: DashboardState, gpus: number): boolean {
  return layout === 'apart' || gpus < 2;
}

/**
 * Returns the charts of GPUs and of the machine, in order. `gpus` is the number of GPUs. An
 * overlaid chart shows only one metric.
 */
export function chartsOf(state: DashboardState, gpus: number): readonly string[] {
  if (isSeparateLayout(state, gpus)) {
    return (
      state.charts ?? [
        ...GPU_CHARTS.map(({ id }) => id),
        ALL_MIG_METRICS,
        ...HOST_CHARTS.map(({ id }) => id),
      ]
    );
  }
  if (state.charts === null) {
    return [...COMPARISON_CHARTS, ...HOST_CHARTS.map(({ id }) => id)];
  }
  const single = state.charts.flatMap((id) => {
    const [of] = gpuCharts([id]);
    return of === undefined ? [id] : of.metrics.map((metric) => metric.id);
  });
  return [...new Set(single)];
}

/**
 * Returns `charts` with `chart` moved before or after `target`. Charts of GPUs and of the machine
 * are not mixed.
 */
export function moveChart(
  charts: readonly string[],
  chart: string,
  target: string,
  after: boolean,
): readonly string[] {
  if (chart === target || isHostChart(chart) !== isHostChart(target)) {
    return charts;
  }
  const others = charts.filter((id) => id !== chart);
  const place = others.indexOf(target) + (after ? 1 : 0);
  return [...others.slice(0, place), chart, ...others.slice(place)];
}

/** Returns `charts` with `chart` moved one position forward, or backward if `step` is negative. */
export function moveChartByStep(
  charts: readonly string[],
  chart: string,
  step: 1 | -1,
): readonly string[] {
  const own = charts.filter((id) => isHostChart(id) === isHostChart(chart));
  const neighbor = own[own.indexOf(chart) + step];
  return neighbor === undefined ? charts : moveChart(charts, chart, neighbor, step > 0);
}

function isHostChart(id: string): boolean {
  return hostCharts([id]).length > 0;
}
