/**
 * What a dashboard shows: which GPUs, which charts, which part of the past. It fits into an
 * address.
 */

import { CHART_IDS } from './kinds';

export interface DashboardState {
  /** GPUs by index; `null` for all. */
  gpus: readonly number[] | null;
  /** All GPUs in one chart per reading, or each for itself. */
  layout: 'apart' | 'together';
  /** The charts by name, in their order; `null` for the usual ones. */
  charts: readonly string[] | null;
  /** Lines that are not drawn, by id. */
  hidden: readonly string[];
  /** How much of the past is shown, up to now or up to where it was held. */
  span_ms: number;
  /** When the charts were paused; `null` where they are live. Samples are still recorded. */
  paused_ms: number | null;
  /** What was zoomed to; `null` where `span_ms` holds. */
  range: readonly [from_ms: number, to_ms: number] | null;
  /** How much earlier the span is that is drawn beside what is shown; `null` for none. */
  compared_ms: number | null;
  /** The height of charts in pixels; `null` for the usual one. */
  height_px: number | null;
  /** Whether axes of values show no more than there is. */
  fitted: boolean;
  /** Ranges of values that charts, by name, were zoomed to. */
  axes: Readonly<Record<string, readonly [low: number, high: number]>>;
}

/** The spans to choose from, in minutes: up to 30 days. */
export const SPANS_MIN = [1, 2, 5, 15, 60, 360, 1440, 7 * 1440, 30 * 1440] as const;
/** Nobody can tell apart what lies closer. */
const LEAST_RANGE_MS = 1000;
/** The stream has this much of the past as it was sampled. */
export const STREAMED_MS = 10 * 60_000;
/** The lowest and the highest charts, in pixels. */
export const HEIGHTS_PX = [60, 600] as const;
const MOST_RANGE_MS = Math.max(...SPANS_MIN) * 60_000;

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

/** The part of the past that is shown at `now_ms`. */
export function rangeOf(
  state: DashboardState,
  now_ms: number,
): readonly [from_ms: number, to_ms: number] {
  const to_ms = state.paused_ms ?? now_ms;
  return state.range ?? [to_ms - state.span_ms, to_ms];
}

/** Zoomed to what lies between two moments; a stretch too short to show changes nothing. */
export function zoomed(state: DashboardState, a_ms: number, b_ms: number): DashboardState {
  const [from_ms, to_ms] = [Math.min(a_ms, b_ms), Math.max(a_ms, b_ms)];
  return to_ms - from_ms < LEAST_RANGE_MS
    ? state
    : { ...state, range: [Math.round(from_ms), Math.round(to_ms)] };
}

/** From a moment on, however short ago that is. */
export function zoomedSince(
  state: DashboardState,
  from_ms: number,
  now_ms: number,
): DashboardState {
  return zoomed(state, Math.min(from_ms, now_ms - LEAST_RANGE_MS), now_ms);
}

/**
 * With `factor` times as much time, and `at_ms` where it was. Zoomed in, it stays where it is;
 * zoomed out as far as it was before, it is as it was before; zoomed out while live, it shows more
 * of the past.
 */
export function zoomedBy(
  state: DashboardState,
  factor: number,
  at_ms: number,
  now_ms: number,
): DashboardState {
  const [from_ms, to_ms] = rangeOf(state, now_ms);
  const newest_ms = state.paused_ms ?? now_ms;
  const length_ms = Math.min(MOST_RANGE_MS, Math.max(LEAST_RANGE_MS, (to_ms - from_ms) * factor));
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
 * Zoomed about the middle by a key; while live, the time range is the next shorter or longer one.
 */
export function zoomedStep(state: DashboardState, factor: number, now_ms: number): DashboardState {
  if (isPaused(state)) {
    const [from_ms, to_ms] = rangeOf(state, now_ms);
    return zoomedBy(state, factor, (from_ms + to_ms) / 2, now_ms);
  }
  const spans_ms = SPANS_MIN.map((minutes) => minutes * 60_000);
  const next_ms =
    factor < 1
      ? spans_ms.findLast((span_ms) => span_ms < state.span_ms)
      : spans_ms.find((span_ms) => span_ms > state.span_ms);
  return { ...state, span_ms: next_ms ?? state.span_ms };
}

/** With the axis of a chart from one value to another; `null` for all of it. */
export function withAxis(
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

/** With charts of this height, as far as that is possible; `null` for the usual one. */
export function withHeight(state: DashboardState, height_px: number | null): DashboardState {
  const [least, most] = HEIGHTS_PX;
  const rounded_px = Math.round(Math.min(most, Math.max(least, height_px ?? 0)));
  return { ...state, height_px: height_px === null ? null : rounded_px };
}

/** Live, with whole axes. */
export function reset(state: DashboardState): DashboardState {
  return { ...resumed(state), fitted: false, axes: {} };
}

/** Moved by a share of what is shown; negative is back. */
export function moved(state: DashboardState, share: number, now_ms: number): DashboardState {
  const [from_ms, to_ms] = rangeOf(state, now_ms);
  return movedBy(state, (to_ms - from_ms) * share, now_ms);
}

/** Moved by some time, at most up to now. */
export function movedBy(state: DashboardState, wanted_ms: number, now_ms: number): DashboardState {
  const [from_ms, to_ms] = rangeOf(state, now_ms);
  const by_ms = Math.min(wanted_ms, now_ms - to_ms);
  return { ...state, range: [Math.round(from_ms + by_ms), Math.round(to_ms + by_ms)] };
}

export function resumed(state: DashboardState): DashboardState {
  return { ...state, paused_ms: null, range: null };
}

/** Shows only these GPUs, or all again if it showed only these. */
export function toggledGpus(state: DashboardState, gpus: readonly number[]): DashboardState {
  return { ...state, gpus: state.gpus?.join() === gpus.join() ? null : gpus };
}

/** Paused at `now_ms`, or live again. */
export function togglePaused(state: DashboardState, now_ms: number): DashboardState {
  return isPaused(state) ? resumed(state) : { ...state, paused_ms: now_ms };
}

/** Whether what is shown stays where it is. */
export function isPaused(state: DashboardState): boolean {
  return state.paused_ms !== null || state.range !== null;
}

/**
 * As part of an address: `gpu=0,1&charts=power&span=5&from=1763635200000&to=1763635260000`; only
 * what is not usual.
 */
export function toAddress(state: DashboardState): string {
  const parts = new URLSearchParams();
  if (state.gpus !== null) {
    parts.set('gpu', state.gpus.join());
  }
  if (state.layout === 'apart') {
    parts.set('view', 'apart');
  }
  if (state.charts !== null) {
    parts.set('charts', state.charts.join());
  }
  if (state.hidden.length > 0) {
    parts.set('hide', state.hidden.join());
  }
  if (state.span_ms !== DEFAULT_STATE.span_ms) {
    parts.set('span', String(rounded(state.span_ms / 60_000)));
  }
  const range = state.paused_ms === null ? state.range : rangeOf(state, state.paused_ms);
  if (range !== null) {
    parts.set('from', String(range[0]));
    parts.set('to', String(range[1]));
  }
  if (state.compared_ms !== null) {
    parts.set('compare', String(state.compared_ms));
  }
  if (state.height_px !== null) {
    parts.set('height', String(state.height_px));
  }
  if (state.fitted) {
    parts.set('fit', '1');
  }
  const axes = Object.entries(state.axes).map(
    ([id, [low, high]]) => `${id}:${rounded(low)}:${rounded(high)}`,
  );
  if (axes.length > 0) {
    parts.set('axes', axes.join());
  }
  return parts.toString().replaceAll('%2C', ',').replaceAll('%3A', ':');
}

/** What an address asks for; what makes no sense in it is left out. */
export function fromAddress(address: string): DashboardState {
  const parts = new URLSearchParams(address);
  const gpus = list(parts, 'gpu')
    ?.map(Number)
    .filter((index) => Number.isInteger(index) && index >= 0);
  const span_ms = Number(parts.get('span')) * 60_000;
  const [from_ms, to_ms] = [Number(parts.get('from')), Number(parts.get('to'))];
  const compared_ms = Number(parts.get('compare'));
  const height_px = Number(parts.get('height'));
  const state: DashboardState = {
    gpus: gpus?.length ? gpus : null,
    layout: parts.get('view') === 'apart' ? 'apart' : 'together',
    charts: asChosen(list(parts, 'charts') ?? []),
    hidden: list(parts, 'hide') ?? [],
    span_ms:
      span_ms > 0
        ? Math.min(MOST_RANGE_MS, Math.max(LEAST_RANGE_MS, span_ms))
        : DEFAULT_STATE.span_ms,
    paused_ms: null,
    range:
      from_ms > 0 && to_ms - from_ms >= LEAST_RANGE_MS && Number.isFinite(to_ms)
        ? [from_ms, to_ms]
        : null,
    compared_ms: compared_ms > 0 && Number.isFinite(compared_ms) ? compared_ms : null,
    height_px: null,
    fitted: parts.get('fit') === '1',
    axes: axesIn(parts),
  };
  return height_px > 0 ? withHeight(state, height_px) : state;
}

/**
 * Returns only this GPU if all were chosen, or else the others with or without it. Without any, all
 * are shown again.
 */
export function chosenWith(
  chosen: readonly number[] | null,
  one: number,
  all: readonly number[],
): readonly number[] | null {
  const next =
    chosen === null ? [one] : all.filter((other) => chosen.includes(other) !== (other === one));
  return next.length === 0 || next.length === all.length ? null : next;
}

/**
 * What was chosen of what there is; `null` where that is nothing, since nobody looks at no chart.
 */
export function asChosen(charts: readonly string[]): DashboardState['charts'] {
  const known = charts.filter((id) => CHART_IDS.includes(id));
  return known.length === 0 ? null : known;
}

/** `power:300:700`, in the unit in which samples have it. */
function axesIn(parts: URLSearchParams): DashboardState['axes'] {
  const ranges = (list(parts, 'axes') ?? []).map((part) => {
    const [id = '', low, high] = part.split(':');
    return [id, [Number(low), Number(high)]] as const;
  });
  return Object.fromEntries(
    ranges.filter(([id, [low, high]]) => id !== '' && low < high && Number.isFinite(high - low)),
  );
}

/** An address needs no more digits than a screen has pixels. */
function rounded(value: number): number {
  return Number(value.toPrecision(5));
}

function list(parts: URLSearchParams, name: string): string[] | undefined {
  return parts
    .get(name)
    ?.split(',')
    .filter((part) => part !== '');
}
