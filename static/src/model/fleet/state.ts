/** The displayed part of a fleet, and its form in a URL. */

import { isMetric, type FleetMetric } from './metric';
import { SORTS, WORST_FIRST, type Sort, type SortKey } from './order';
import { GROUPINGS, OWNER_SORTS, type OwnerSort } from './owners';
import type { Wanted } from './free';

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

/** A GPU or node identified by name, because row numbers change. */
export interface Place {
  node: string;
  /** The index of the GPU; `null` for the whole node. */
  gpu: number | null;
}

export interface FleetShown {
  view: FleetViewName;
  metric: FleetMetric;
  sort: Sort;
  filter: string;
  range: RangeName;
  selected: Place | null;
  owners: { key: OwnerSort; reversed: boolean };
  wanted: Wanted;
}

const GIB = 1024 ** 3;
/** The limits of a request for free GPUs. No machine has more. */
const GPUS_MOST = 1024;
const MEMORY_MOST_GIB = 4096;
const FILTER_LENGTH = 400;
const NAME_LENGTH = 120;

export const USUAL: FleetShown = {
  view: 'map',
  metric: 'utilization',
  sort: WORST_FIRST,
  filter: '',
  range: '1d',
  selected: null,
  owners: { key: 'gpu_hours', reversed: false },
  wanted: { gpus: 4, memory_bytes: 0, model: null },
};

/** Returns the state of a URL query. Missing and invalid parts have their defaults. */
export function shownIn(address: string): FleetShown {
  const parts = new URLSearchParams(address);
  const metric = parts.get('metric');
  const node = parts.get('node');
  const gpu = parts.get('gpu');
  return {
    view: oneOf(VIEWS, parts.get('view')) ?? USUAL.view,
    metric: isMetric(metric) ? metric : USUAL.metric,
    sort: sortIn(SORTS, parts.get('sort')) ?? USUAL.sort,
    filter: (parts.get('filter') ?? '').slice(0, FILTER_LENGTH),
    range: oneOf(Object.keys(RANGES) as RangeName[], parts.get('range')) ?? USUAL.range,
    selected:
      node === null
        ? null
        : { node, gpu: gpu !== null && /^\d{1,5}$/.test(gpu) ? Number(gpu) : null },
    owners: sortIn(OWNER_SORTS, parts.get('by')) ?? USUAL.owners,
    wanted: {
      gpus: wholeIn(parts.get('gpus'), 1, GPUS_MOST) ?? USUAL.wanted.gpus,
      memory_bytes: GIB * (wholeIn(parts.get('memory'), 0, MEMORY_MOST_GIB) ?? 0),
      model: parts.get('model')?.slice(0, NAME_LENGTH) ?? null,
    },
  };
}

/** Returns the URL query of a state. Default values are omitted. */
export function addressOf(shown: FleetShown): string {
  const parts = new URLSearchParams();
  const put = (name: string, value: string, usual: string): void => {
    if (value !== usual) {
      parts.set(name, value);
    }
  };
  put('view', shown.view, USUAL.view);
  put('metric', shown.metric, USUAL.metric);
  put('sort', sortText(shown.sort), sortText(USUAL.sort));
  put('filter', shown.filter.trim(), '');
  put('range', shown.range, USUAL.range);
  put('by', sortText(shown.owners), sortText(USUAL.owners));
  put('gpus', String(shown.wanted.gpus), String(USUAL.wanted.gpus));
  put('memory', String(Math.round(shown.wanted.memory_bytes / GIB)), '0');
  put('model', shown.wanted.model ?? '', '');
  if (shown.selected !== null) {
    parts.set('node', shown.selected.node);
    put('gpu', String(shown.selected.gpu ?? ''), '');
  }
  return parts.toString();
}

/** Returns the order after a click on a column: the default direction, then the reverse. */
export function sortedBy<K extends string>(
  sort: { key: K; reversed: boolean },
  key: K,
): { key: K; reversed: boolean } {
  return { key, reversed: sort.key === key && !sort.reversed };
}

function sortText({ key, reversed }: { key: SortKey | OwnerSort; reversed: boolean }): string {
  return `${reversed ? '-' : ''}${key}`;
}

function sortIn<K extends string>(
  keys: readonly K[],
  text: string | null,
): { key: K; reversed: boolean } | null {
  const key = oneOf(keys, text?.replace(/^-/, '') ?? null);
  return key === null ? null : { key, reversed: text?.startsWith('-') === true };
}

function oneOf<T extends string>(all: readonly T[], text: string | null): T | null {
  return all.find((one) => one === text) ?? null;
}

function wholeIn(text: string | null, least: number, most: number): number | null {
  const value = text !== null && /^\d{1,6}$/.test(text) ? Number(text) : NaN;
  return value >= least && value <= most ? value : null;
}
