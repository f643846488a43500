/** The displayed part of a fleet, and its form in a URL. */

import { isMetric, type FleetMetric } from './metric';
import { SORTS, WORST_FIRST, type Sort, type SortKey } from './order';
import { GROUPINGS, OWNER_SORTS, type OwnerSort } from './owners';
import type { GpuRequest } from './free';

export const VIEWS = ['map', 'nodes', 'gpus', ...GROUPINGS, 'free', 'events'] as const;
export type FleetViewName = (typeof VIEWS)[number];

/** The selectable time ranges in seconds, by their names in URLs. */
export const RANGES = {
  '1h': 3600,
  '6h': 21_600,
  '1d': 86_400,
  '7d': 604_800,
  '30d': 2_592_000,
} as const;
export type RangeName = keyof typeof RANGES;

/** A GPU or a whole node. It is identified by name, because row numbers change. */
export interface RowId {
  node: string;
  /** The index of the GPU; `null` for the whole node. */
  gpu: number | null;
}

export interface FleetState {
  view: FleetViewName;
  metric: FleetMetric;
  sort: Sort;
  filter: string;
  range: RangeName;
  selected: RowId | null;
  owners: { key: OwnerSort; reversed: boolean };
  wanted: GpuRequest;
}

const GIB = 1024 ** 3;
/**
 * The maximum number of GPUs in a request for free GPUs. `MAX_MEMORY_GIB` is the maximum memory. No
 * machine has more of either.
 */
const MAX_GPUS = 1024;
const MAX_MEMORY_GIB = 4096;
const MAX_FILTER_LENGTH = 400;
const MAX_NAME_LENGTH = 120;

export const DEFAULT_FLEET_STATE: FleetState = {
  view: 'map',
  metric: 'utilization',
  sort: WORST_FIRST,
  filter: '',
  range: '1d',
  selected: null,
  owners: { key: 'gpu_hours', reversed: false },
  wanted: { gpus: 4, memory_bytes: 0, model: null },
};

/**
 * Returns the state that a URL query describes. Missing and invalid parts get their default values.
 */
export function parseFleetState(address: string): FleetState {
  const parts = new URLSearchParams(address);
  const metric = parts.get('metric');
  const node = parts.get('node');
  const gpu = parts.get('gpu');
  return {
    view: parseChoice(VIEWS, parts.get('view')) ?? DEFAULT_FLEET_STATE.view,
    metric: isMetric(metric) ? metric : DEFAULT_FLEET_STATE.metric,
    sort: parseSort(SORTS, parts.get('sort')) ?? DEFAULT_FLEET_STATE.sort,
    filter: (parts.get('filter') ?? '').slice(0, MAX_FILTER_LENGTH),
    range:
      parseChoice(Object.keys(RANGES) as RangeName[], parts.get('range')) ??
      DEFAULT_FLEET_STATE.range,
    selected:
      node === null
        ? null
        : { node, gpu: gpu !== null && /^\d{1,5}$/.test(gpu) ? Number(gpu) : null },
    owners: parseSort(OWNER_SORTS, parts.get('by')) ?? DEFAULT_FLEET_STATE.owners,
    wanted: {
      gpus: parseInteger(parts.get('gpus'), 1, MAX_GPUS) ?? DEFAULT_FLEET_STATE.wanted.gpus,
      memory_bytes: GIB * (parseInteger(parts.get('memory'), 0, MAX_MEMORY_GIB) ?? 0),
      model: parts.get('model')?.slice(0, MAX_NAME_LENGTH) ?? null,
    },
  };
}

/** Returns the URL query of a state. Default values are omitted. */
export function formatFleetState(shown: FleetState): string {
  const parts = new URLSearchParams();
  const put = (name: string, value: string, usual: string): void => {
    if (value !== usual) {
      parts.set(name, value);
    }
  };
  put('view', shown.view, DEFAULT_FLEET_STATE.view);
  put('metric', shown.metric, DEFAULT_FLEET_STATE.metric);
  put('sort', formatSort(shown.sort), formatSort(DEFAULT_FLEET_STATE.sort));
  put('filter', shown.filter.trim(), '');
  put('range', shown.range, DEFAULT_FLEET_STATE.range);
  put('by', formatSort(shown.owners), formatSort(DEFAULT_FLEET_STATE.owners));
  put('gpus', String(shown.wanted.gpus), String(DEFAULT_FLEET_STATE.wanted.gpus));
  put('memory', String(Math.round(shown.wanted.memory_bytes / GIB)), '0');
  put('model', shown.wanted.model ?? '', '');
  if (shown.selected !== null) {
    parts.set('node', shown.selected.node);
    put('gpu', String(shown.selected.gpu ?? ''), '');
  }
  return parts.toString();
}

/**
 * Returns the sort order after a click on a column. The first click selects the column's default
 * direction, and the next click reverses it.
 */
export function sortAfterClick<K extends string>(
  sort: { key: K; reversed: boolean },
  key: K,
): { key: K; reversed: boolean } {
  return { key, reversed: sort.key === key && !sort.reversed };
}

function formatSort({ key, reversed }: { key: SortKey | OwnerSort; reversed: boolean }): string {
  return `${reversed ? '-' : ''}${key}`;
}

function parseSort<K extends string>(
  keys: readonly K[],
  text: string | null,
): { key: K; reversed: boolean } | null {
  const key = parseChoice(keys, text?.replace(/^-/, '') ?? null);
  return key === null ? null : { key, reversed: text?.startsWith('-') === true };
}

function parseChoice<T extends string>(all: readonly T[], text: string | null): T | null {
  return all.find((one) => one === text) ?? null;
}

function parseInteger(text: string | null, least: number, most: number): number | null {
  const value = text !== null && /^\d{1,6}$/.test(text) ? Number(text) : NaN;
  return value >= least && value <= most ? value : null;
}
