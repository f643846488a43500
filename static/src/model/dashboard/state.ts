/** The state of a dashboard: its GPUs, charts and time range. It can be stored in a URL. */

import { ALL_MIG_METRICS } from '../metric';
import {
  CHART_IDS,
  COMPARISON_CHARTS,
  GPU_CHARTS,
  gpuCharts,
  HOST_CHARTS,
  hostCharts,
  LIMITS_CHART,
} from './kinds';

export interface DashboardState {
  /** The selected GPUs by index; `null` for all. */
  gpus: readonly number[] | null;
  /**
   * Whether each GPU has its own charts (`apart`), or all GPUs share one chart per metric
   * (`together`).
   */
  layout: 'apart' | 'together';
  /** The IDs of the charts in order; `null` for the default charts. */
  charts: readonly string[] | null;
  /** The IDs of hidden lines. */
  hidden: readonly string[];
  /** The length of the displayed time range, which ends now or when the charts were paused. */
  span_ms: number;
  /**
   * The time at which the charts were paused; `null` if they are live. Samples are still recorded
   * while the charts are paused.
   */
  paused_ms: number | null;
  /** The zoomed time range; `null` if `span_ms` applies. */
  range: readonly [from_ms: number, to_ms: number] | null;
  /**
   * How much earlier the span is with which the displayed span is compared; `null` without a
   * comparison.
   */
  compared_ms: number | null;
  /** The height of charts in pixels; `null` for the default. */
  height_px: number | null;
  /** Whether value axes are limited to the range of the values. */
  fitted: boolean;
  /** The zoomed value ranges by chart ID. */
  axes: Readonly<Record<string, readonly [low: number, high: number]>>;
}

/** The selectable time ranges in minutes, up to 30 days. */
export const SPANS_MIN = [1, 2, 5, 15, 60, 360, 1440, 7 * 1440, 30 * 1440] as const;
/** The shortest displayed time range. */
const MIN_RANGE_MS = 1000;
/** The length of the past that the stream sends at full resolution. */
export const STREAMED_MS = 10 * 60_000;
/** The minimum and maximum height of charts in pixels. */
export const HEIGHTS_PX = [60, 600] as const;
const MAX_RANGE_MS = Math.max(...SPANS_MIN) * 60_000;

export const DEFAULT_STATE: DashboardState = {
  gpus: null,
  layout: 'together',
  charts: null,
  hidden: [],
  span_ms: 2 * 60_000,
  paused_ms: null,
  range: null,
  compared_ms: null,
  height_px: null,
  fitted: false,
  axes: {},
};

/** Returns the displayed time range at `now_ms`. */
export function displayedRange(
  state: DashboardState,
  now_ms: number,
): readonly [from_ms: number, to_ms: number] {
  const to_ms = state.paused_ms ?? now_ms;
  return state.range ?? [to_ms - state.span_ms, to_ms];
}

/** Returns a state that is zoomed to a time range. A range that is too short changes nothing. */
export function zoomTo(state: DashboardState, a_ms: number, b_ms: number): DashboardState {
  const [from_ms, to_ms] = [Math.min(a_ms, b_ms), Math.max(a_ms, b_ms)];
  return to_ms - from_ms < MIN_RANGE_MS
    ? state
    : { ...state, range: [Math.round(from_ms), Math.round(to_ms)] };
}

/**
 * Returns a state that is zoomed to the time since `from_ms`. If this time range is too short, the
 * state shows the shortest allowed one.
 */
export function zoomSince(state: DashboardState, from_ms: number, now_ms: number): DashboardState {
  return zoomTo(state, Math.min(from_ms, now_ms - MIN_RANGE_MS), now_ms);
}

/**
 * Returns a state that shows `factor` times as much time, with `at_ms` at the same position.
 * Zooming in pauses live charts. If the user then zooms out to the original time range, the charts
 * are live again. If live charts are zoomed out, they show more of the past.
 */
export function zoomBy(
  state: DashboardState,
  factor: number,
  at_ms: number,
  now_ms: number,
): DashboardState {
  const [from_ms, to_ms] = displayedRange(state, now_ms);
  const newest_ms = state.paused_ms ?? now_ms;
  const length_ms = Math.min(MAX_RANGE_MS, Math.max(MIN_RANGE_MS, (to_ms - from_ms) * factor));
  if (!isPaused(state) && factor >= 1) {
    return { ...state, span_ms: length_ms };
  }
  const end_ms = at_ms + ((to_ms - at_ms) / (to_ms - from_ms)) * length_ms;
  if (end_ms >= newest_ms && length_ms >= state.span_ms) {
    return { ...state, range: null };
  }
  const last_ms = Math.round(Math.min(end_ms, newest_ms));
  return { ...state, range: [last_ms - Math.round(length_ms), last_ms] };
}

/**
 * Returns a state that is zoomed by a key press. Paused charts are zoomed around their center; live
 * charts change to the next shorter or longer time range.
 */
export function zoomByStep(state: DashboardState, factor: number, now_ms: number): DashboardState {
  if (isPaused(state)) {
    const [from_ms, to_ms] = displayedRange(state, now_ms);
    return zoomBy(state, factor, (from_ms + to_ms) / 2, now_ms);
  }
  const spans_ms = SPANS_MIN.map((minutes) => minutes * 60_000);
  const next_ms =
    factor < 1
      ? spans_ms.findLast((span_ms) => span_ms < state.span_ms)
      : spans_ms.find((span_ms) => span_ms > state.span_ms);
  return { ...state, span_ms: next_ms ?? state.span_ms };
}

/**
 * Returns a state in which the value axis of a chart shows `range`, or all values if `range` is
 * `null`.
 */
export function withAxisRange(
  state: DashboardState,
  chart: string,
  range: readonly [number, number] | null,
): DashboardState {
  const others = Object.entries(state.axes).filter(([id]) => id !== chart);
  const low = range === null ? 0 : Math.min(...range);
  const high = range === null ? 0 : Math.max(...range);
  return {
    ...state,
    axes: Object.fromEntries(low < high ? [...others, [chart, [low, high]]] : others),
  };
}

/**
 * Returns a state in which charts have the height `height_px`, within the limits. `null` selects
 * the default height.
 */
export function withHeight(state: DashboardState, height_px: number | null): DashboardState {
  const [least, most] = HEIGHTS_PX;
  const rounded_px = Math.round(Math.min(most, Math.max(least, height_px ?? 0)));
  return { ...state, height_px: height_px === null ? null : rounded_px };
}

/** Returns a state with live charts and unzoomed axes. */
export function resetZoom(state: DashboardState): DashboardState {
  return { ...resume(state), fitted: false, axes: {} };
}

/**
 * Returns a state that is moved by a share of the displayed time range. A negative share moves
 * back.
 */
export function moveByShare(state: DashboardState, share: number, now_ms: number): DashboardState {
  const [from_ms, to_ms] = displayedRange(state, now_ms);
  return moveBy(state, (to_ms - from_ms) * share, now_ms);
}

/** Returns a state that is moved by `wanted_ms`, but not beyond now. */
export function moveBy(state: DashboardState, wanted_ms: number, now_ms: number): DashboardState {
  const [from_ms, to_ms] = displayedRange(state, now_ms);
  const by_ms = Math.min(wanted_ms, now_ms - to_ms);
  return { ...state, range: [Math.round(from_ms + by_ms), Math.round(to_ms + by_ms)] };
}

export function resume(state: DashboardState): DashboardState {
  return { ...state, paused_ms: null, range: null };
}

/**
 * Returns a state that shows only `gpus`. If the state already shows only these, the new state
 * shows all GPUs.
 */
export function showOnlyOrAllGpus(state: DashboardState, gpus: readonly number[]): DashboardState {
  return { ...state, gpus: state.gpus?.join() === gpus.join() ? null : gpus };
}

/** Returns a state in which live charts are paused at `now_ms`, or paused charts are resumed. */
export function togglePaused(state: DashboardState, now_ms: number): DashboardState {
  return isPaused(state) ? resume(state) : { ...state, paused_ms: now_ms };
}

/** Returns whether the displayed time range is fixed. */
export function isPaused(state: DashboardState): boolean {
  return state.paused_ms !== null || state.range !== null;
}

/**
 * Returns the query of a URL: `gpu=0,1&charts=power&span=5&from=1763635200000&to=1763635260000`.
 * Default values are omitted.
 */
export function formatDashboardState(state: DashboardState): string {
  const { span_ms } = state;
  const range = state.paused_ms === null ? state.range : displayedRange(state, state.paused_ms);
  const axes = Object.entries(state.axes).map(
    ([id, [low, high]]) => `${id}:${roundForUrl(low)}:${roundForUrl(high)}`,
  );
  const values: Record<string, string | number | null | undefined> = {
    gpu: state.gpus?.join(),
    view: state.layout === 'apart' ? 'apart' : null,
    charts: state.charts?.join(),
    hide: state.hidden.length > 0 ? state.hidden.join() : null,
    span: span_ms === DEFAULT_STATE.span_ms ? null : roundForUrl(span_ms / 60_000),
    from: range?.[0],
    to: range?.[1],
    compare: state.compared_ms,
    height: state.height_px,
    fit: state.fitted ? 1 : null,
    axes: axes.length > 0 ? axes.join() : null,
  };
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value != null) {
      parts.set(name, String(value));
    }
  }
  return parts.toString().replaceAll('%2C', ',').replaceAll('%3A', ':');
}

/** Returns the state of a URL query. Invalid parts are ignored. */
export function parseDashboardState(address: string): DashboardState {
  const parts = new URLSearchParams(address);
  const gpus = parseList(parts, 'gpu')
    ?.map(Number)
    .filter((index) => Number.isInteger(index) && index >= 0);
  const span_ms = Number(parts.get('span')) * 60_000;
  const [from_ms, to_ms] = [Number(parts.get('from')), Number(parts.get('to'))];
  const compared_ms = Number(parts.get('compare'));
  const height_px = Number(parts.get('height'));
  const state: DashboardState = {
    gpus: gpus?.length ? gpus : null,
    layout: parts.get('view') === 'apart' ? 'apart' : 'together',
    charts: keepValidCharts(parseList(parts, 'charts') ?? []),
    hidden: parseList(parts, 'hide') ?? [],
    span_ms:
      span_ms > 0 ? Math.min(MAX_RANGE_MS, Math.max(MIN_RANGE_MS, span_ms)) : DEFAULT_STATE.span_ms,
    paused_ms: null,
    range:
      from_ms > 0 && to_ms - from_ms >= MIN_RANGE_MS && Number.isFinite(to_ms)
        ? [from_ms, to_ms]
        : null,
    compared_ms: compared_ms > 0 && Number.isFinite(compared_ms) ? compared_ms : null,
    height_px: null,
    fitted: parts.get('fit') === '1',
    axes: parseAxes(parts),
  };
  return height_px > 0 ? withHeight(state, height_px) : state;
}

/**
 * If all GPUs were selected, selects only the GPU `one`. Otherwise adds `one` to the selection, or
 * removes it. Returns `null`, which stands for all GPUs, if the result would contain no GPU or
 * every GPU.
 */
export function toggleGpuSelection(
  chosen: readonly number[] | null,
  one: number,
  all: readonly number[],
): readonly number[] | null {
  const next =
    chosen === null ? [one] : all.filter((other) => chosen.includes(other) !== (other === one));
  return next.length === 0 || next.length === all.length ? null : next;
}

/**
 * Returns the charts whose IDs are known, or `null` for the default charts if none are, so that a
 * dashboard is never empty.
 */
export function keepValidCharts(charts: readonly string[]): DashboardState['charts'] {
  const known = charts.filter((id) => CHART_IDS.includes(id));
  return known.length === 0 ? null : known;
}

/** Parses axis ranges such as `power:300:700`, in the units of samples. */
function parseAxes(parts: URLSearchParams): DashboardState['axes'] {
  const ranges = (parseList(parts, 'axes') ?? []).map((part) => {
    const [id = '', low, high] = part.split(':');
    return [id, [Number(low), Number(high)]] as const;
  });
  return Object.fromEntries(
    ranges.filter(([id, [low, high]]) => id !== '' && low < high && Number.isFinite(high - low)),
  );
}

/** Rounds a value to the precision of a screen, to keep the URL short. */
function roundForUrl(value: number): number {
  return Number(value.toPrecision(5));
}

function parseList(parts: URLSearchParams, name: string): string[] | undefined {
  return parts
    .get(name)
    ?.split(',')
    .filter((part) => part !== '');
}

/** Returns whether each GPU has its own charts. */
export function hasSeparateGpuCharts({ layout }: DashboardState, gpus: number): boolean {
  return layout === 'apart' || gpus < 2;
}

/**
 * Returns the charts of GPUs and of the machine, in order. `gpus` is the number of GPUs. If the
 * GPUs share their charts, a GPU chart with several metrics is split into one chart per metric,
 * except for the chart of limits.
 */
export function displayedChartIds(state: DashboardState, gpus: number): readonly string[] {
  if (hasSeparateGpuCharts(state, gpus)) {
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
    return of === undefined || id === LIMITS_CHART ? [id] : of.metrics.map((metric) => metric.id);
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
