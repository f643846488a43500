/** What is shown of a fleet: which view, metric and order, which range of time, and which GPUs. */

import { button, h, setAttribute, setShown, setText } from '../../lib/dom';
import { count, duration } from '../../lib/format';
import { table, trans } from '../../lib/translation';
import { filterWords } from '../../model/fleet/filter';
import { METRICS, metricLabel } from '../../model/fleet/metric';
import type { SortKey } from '../../model/fleet/order';
import {
  RANGES,
  VIEWS,
  type FleetShown,
  type FleetViewName,
  type RangeName,
} from '../../model/fleet/state';

/** Orders of the map; tables are sorted by their columns. */
const MAP_SORTS: readonly SortKey[] = [
  'worst',
  'name',
  'utilization',
  'memory',
  'power',
  'temperature',
  'idle',
];

const LABELS = table(() => ({
  views: {
    map: trans.__('Map'),
    nodes: trans.__('Nodes'),
    gpus: trans.__('GPUs'),
    users: trans.__('Users'),
    jobs: trans.__('Jobs'),
    notebooks: trans.__('Notebooks'),
    namespaces: trans.__('Namespaces'),
    free: trans.__('Find free GPUs'),
    events: trans.__('Events'),
  } satisfies Record<FleetViewName, string>,
  sorts: {
    worst: trans.__('Worst first'),
    name: trans.__('By name'),
    utilization: trans.__('Highest utilization'),
    memory: trans.__('Most memory used'),
    power: trans.__('Highest power'),
    temperature: trans.__('Hottest'),
    idle: trans.__('Longest idle'),
    model: '',
    owner: '',
  } satisfies Record<SortKey, string>,
}));

export function viewLabel(view: FleetViewName): string {
  return LABELS().views[view];
}

let fields = 0;

export interface ControlsContent {
  shown: FleetShown;
  byGpu: boolean;
  /** How many match, of how many; `null` without a filter. */
  matching: readonly [number, number] | null;
  mistakes: readonly string[];
}

export class Controls {
  readonly element: HTMLElement;
  readonly filter: HTMLInputElement;
  private shown: FleetShown | null = null;
  private readonly tabs: ReadonlyMap<FleetViewName, HTMLButtonElement>;
  private readonly ranges: ReadonlyMap<RangeName, HTMLElement>;
  private readonly metrics: ReadonlyMap<string, HTMLElement>;
  private readonly metricGroup: HTMLElement;
  private readonly sort: HTMLSelectElement;
  private readonly sortField: HTMLElement;
  private readonly count = h('span', {
    class: 'gpumon-fleet-count',
    'data-testid': 'gpumon-fleet-count',
  });
  private readonly mistakes = h('p', { class: 'gpumon-fleet-mistake', role: 'alert' });

  constructor(
    private readonly id: string,
    private readonly change: (changes: Partial<FleetShown>) => void,
    /** Goes on from the filter to what it has found, or away from it. */
    private readonly leaveFilter: () => void,
  ) {
    this.tabs = new Map(VIEWS.map((view) => [view, this.tab(view)]));
    const tabs = h('div', { class: 'gpumon-fleet-tabs', role: 'tablist' }, ...this.tabs.values());
    setAttribute(tabs, 'aria-label', trans.__('Views'));
    tabs.addEventListener('keydown', (event) => this.onTabKey(event));
    this.ranges = new Map(
      (Object.keys(RANGES) as RangeName[]).map((range) => [
        range,
        chip(range, duration(RANGES[range] * 1000), () => change({ range })),
      ]),
    );
    this.metrics = new Map(
      METRICS.map((metric) => [
        metric,
        chip(metric, metricLabel(metric), () => change({ metric })),
      ]),
    );
    this.metricGroup = group(trans.__('Metric'), this.metrics.values());
    this.sort = h(
      'select',
      { class: 'gpumon-fleet-select', 'aria-label': trans.__('Order') },
      ...MAP_SORTS.map((key) => h('option', { value: key }, LABELS().sorts[key])),
    );
    this.sort.addEventListener('change', () =>
      change({ sort: { key: this.sort.value as SortKey, reversed: false } }),
    );
    this.sortField = h('label', { class: 'gpumon-fleet-sort' }, this.sort);
    this.filter = this.filterInput();
    const words = h(
      'datalist',
      { id: `gpumon-fleet-words-${(fields += 1)}` },
      ...filterWords().map((value) => h('option', { value })),
    );
    this.filter.setAttribute('list', words.id);
    this.element = h(
      'div',
      { class: 'gpumon-fleet-controls' },
      h(
        'div',
        { class: 'gpumon-fleet-line' },
        tabs,
        group(trans.__('Time range'), this.ranges.values()),
      ),
      h(
        'div',
        { class: 'gpumon-fleet-line gpumon-fleet-line-second' },
        h('div', { class: 'gpumon-fleet-search', role: 'search' }, this.filter, words, this.count),
        this.metricGroup,
        this.sortField,
      ),
      this.mistakes,
    );
  }

  update({ shown, byGpu, matching, mistakes }: ControlsContent): void {
    this.shown = shown;
    for (const [view, tab] of this.tabs) {
      const isCurrent = view === shown.view;
      setAttribute(tab, 'aria-selected', String(isCurrent));
      setAttribute(tab, 'tabindex', isCurrent ? '0' : '-1');
      setShown(tab, byGpu || view !== 'gpus');
    }
    press(this.ranges, shown.range);
    press(this.metrics, shown.metric);
    setShown(this.metricGroup, shown.view === 'map');
    setShown(this.sortField, shown.view === 'map');
    // An order that only a table has shows in none of the map's.
    this.sort.value = MAP_SORTS.includes(shown.sort.key) ? shown.sort.key : '';
    if (this.filter.value.trim() !== shown.filter.trim()) {
      this.filter.value = shown.filter;
    }
    setShown(this.count, matching !== null);
    if (matching !== null) {
      setText(this.count, trans.__('%1 of %2', count(matching[0]), count(matching[1])));
    }
    setShown(this.mistakes, mistakes.length > 0);
    setText(this.mistakes, mistakes.join(' '));
  }

  private filterInput(): HTMLInputElement {
    const input = h('input', {
      class: 'gpumon-fleet-filter',
      type: 'search',
      placeholder: trans.__('Filter by node, GPU, user, job…'),
      'aria-label': trans.__('Filter GPUs'),
      'aria-keyshortcuts': '/',
      autocomplete: 'off',
      spellcheck: 'false',
      title: trans.__(
        'Words that all have to match: names of nodes, GPUs, users, jobs and namespaces; busy, idle, free, held, lost, hot; user:ana, job:88123; memory>80GiB, power<100W; a minus before a word excludes.',
      ),
    });
    input.addEventListener('input', () => this.change({ filter: input.value }));
    input.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' || (event.key === 'Escape' && input.value === '')) {
        event.preventDefault();
        event.stopPropagation();
        this.leaveFilter();
      }
    });
    return input;
  }

  private tab(view: FleetViewName): HTMLButtonElement {
    return button(
      {
        class: 'gpumon-fleet-tab',
        role: 'tab',
        id: `${this.id}-tab-${view}`,
        'aria-controls': `${this.id}-panel`,
        'data-view': view,
      },
      () => this.showView(view),
      viewLabel(view),
    );
  }

  /**
   * Clears the filter before free GPUs are shown: a filter from another view, such as a user, would
   * hide all others.
   */
  private showView(view: FleetViewName): void {
    const isEntered = view === 'free' && this.shown?.view !== 'free';
    this.change(isEntered ? { view, filter: '' } : { view });
  }

  /** Arrows go from tab to tab, as in every list of them. */
  private onTabKey(event: KeyboardEvent): void {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    const views = VIEWS.filter((view) => this.tabs.get(view)?.hidden === false);
    const at = views.indexOf(this.shown?.view ?? 'map');
    const view = views[(at + step + views.length) % views.length];
    if (step !== 0 && view !== undefined) {
      event.preventDefault();
      this.showView(view);
      this.tabs.get(view)?.focus();
    }
  }
}

function group(label: string, members: Iterable<HTMLElement>): HTMLElement {
  return h('div', { class: 'gpumon-fleet-group', role: 'group', 'aria-label': label }, ...members);
}

function chip(id: string, text: string, onClick: () => void): HTMLElement {
  return button({ class: 'gpumon-fleet-chip', 'data-chip': id }, onClick, text);
}

function press(all: ReadonlyMap<string, HTMLElement>, chosen: string): void {
  for (const [id, element] of all) {
    setAttribute(element, 'aria-pressed', String(id === chosen));
  }
}
