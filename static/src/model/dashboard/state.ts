/** What a dashboard shows: which GPUs, which charts, which part of the past. It fits into an address. */

import { CHART_IDS } from './kinds';

export interface DashboardState {
  /** GPUs by index; `null` for all. */
  gpus: readonly number[] | null;
  /** All GPUs in one chart per reading, or each for itself. */
  layout: 'apart' | 'together';
  /** The charts by name; `null` for all. */
  charts: readonly string[] | null;
  /** Lines that are not drawn, by id. */
  hidden: readonly string[];
  /** How much of the past is shown, up to now or up to where it was held. */
  span_ms: number;
  /** When the charts were paused; `null` where they are live. Samples are still recorded. */
  paused_ms: number | null;
  /** What was zoomed to; `null` where `span_ms` holds. */
  range: readonly [from_ms: number, to_ms: number] | null;
}

/** The spans to choose from, in minutes. */
export const SPANS_MIN = [1, 2, 5, 15, 60] as const;
/** Nobody can tell apart what lies closer. */
const LEAST_RANGE_MS = 1000;

export const DEFAULT_STATE: DashboardState = {
  gpus: null,
  layout: 'together',
  charts: null,
  hidden: [],
  span_ms: 2 * 60_000,
  paused_ms: null,
  range: null,
};

/** The part of the past that is shown at `now_ms`. */
export function rangeOf(state: DashboardState, now_ms: number): readonly [from_ms: number, to_ms: number] {
  const to_ms = state.paused_ms ?? now_ms;
  return state.range ?? [to_ms - state.span_ms, to_ms];
}

/** Zoomed to what lies between two moments; a stretch too short to show changes nothing. */
export function zoomed(state: DashboardState, a_ms: number, b_ms: number): DashboardState {
  const [from_ms, to_ms] = [Math.min(a_ms, b_ms), Math.max(a_ms, b_ms)];
  return to_ms - from_ms < LEAST_RANGE_MS ? state : { ...state, range: [Math.round(from_ms), Math.round(to_ms)] };
}

/** Moved by a share of what is shown; negative is back. */
export function moved(state: DashboardState, share: number, now_ms: number): DashboardState {
  const [from_ms, to_ms] = rangeOf(state, now_ms);
  const by_ms = Math.min((to_ms - from_ms) * share, now_ms - to_ms);
  return { ...state, range: [Math.round(from_ms + by_ms), Math.round(to_ms + by_ms)] };
}

export function resumed(state: DashboardState): DashboardState {
  return { ...state, paused_ms: null, range: null };
}

/** Paused at `now_ms`, or live again. */
export function togglePaused(state: DashboardState, now_ms: number): DashboardState {
  return isPaused(state) ? resumed(state) : { ...state, paused_ms: now_ms };
}

/** Whether what is shown stays where it is. */
export function isPaused(state: DashboardState): boolean {
  return state.paused_ms !== null || state.range !== null;
}

/** As part of an address: `gpu=0,1&charts=power&span=5&from=1763635200000&to=1763635260000`; only what is not usual. */
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
    parts.set('span', String(state.span_ms / 60_000));
  }
  const range = state.paused_ms === null ? state.range : rangeOf(state, state.paused_ms);
  if (range !== null) {
    parts.set('from', String(range[0]));
    parts.set('to', String(range[1]));
  }
  return parts.toString().replaceAll('%2C', ',');
}

/** What an address asks for; what makes no sense in it is left out. */
export function fromAddress(address: string): DashboardState {
  const parts = new URLSearchParams(address);
  const gpus = list(parts, 'gpu')
    ?.map(Number)
    .filter((index) => Number.isInteger(index) && index >= 0);
  const charts = list(parts, 'charts')?.filter((id) => CHART_IDS.includes(id));
  const span_ms = Number(parts.get('span')) * 60_000;
  const [from_ms, to_ms] = [Number(parts.get('from')), Number(parts.get('to'))];
  return {
    gpus: gpus?.length ? gpus : null,
    layout: parts.get('view') === 'apart' ? 'apart' : 'together',
    charts: charts?.length ? charts : null,
    hidden: list(parts, 'hide') ?? [],
    span_ms: span_ms > 0 && Number.isFinite(span_ms) ? span_ms : DEFAULT_STATE.span_ms,
    paused_ms: null,
    range: from_ms > 0 && to_ms - from_ms >= LEAST_RANGE_MS && Number.isFinite(to_ms) ? [from_ms, to_ms] : null,
  };
}

function list(parts: URLSearchParams, name: string): string[] | undefined {
  return parts
    .get(name)
    ?.split(',')
    .filter((part) => part !== '');
}
