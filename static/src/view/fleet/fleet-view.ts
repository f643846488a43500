/** The fleet on a screen: numbers of all of it, a map or a table, and all that is known of one GPU. */

import { button, h, setAttribute, setShown } from '../../lib/dom';
import { isOnDark } from '../../lib/color';
import { duration } from '../../lib/format';
import { remembered } from '../../lib/remembered';
import { observeWidth } from '../../lib/screen';
import { adoptStyle } from '../../lib/style';
import { trans } from '../../lib/translation';
import { columnsOf, type Columns } from '../../model/fleet/columns';
import { spokenRow } from '../../model/fleet/describe';
import { parseFilter, toggledWord, type Filter } from '../../model/fleet/filter';
import { missingText, readingText } from '../../model/fleet/metric';
import { nodeOrder, rowOrder } from '../../model/fleet/order';
import { GROUPINGS, type Grouping } from '../../model/fleet/owners';
import type { Reader, Wishes } from '../../model/fleet/reader';
import { RANGES, sortedBy, type FleetShown } from '../../model/fleet/state';
import { concernsOf, totalsOf } from '../../model/fleet/totals';
import { readPalette, type Palette } from '../palette';
import style from '../style/fleet.css?inline';
import { Concerns } from './concerns';
import { Controls } from './controls';
import { Detail } from './detail';
import { EventView } from './event-view';
import { FreeView } from './free-view';
import { FleetHead } from './head';
import { Legend } from './legend';
import { HeatMap } from './map/heat-map';
import { NodeLinks, type NodeOpener } from './node-link';
import { OwnerView } from './owner-view';
import { Selection } from './selection';
import { Spoken } from './spoken';
import { Summary } from './summary';
import type { FleetTable } from './table/fleet-table';
import { gpuTable } from './table/gpu-table';
import { nodeTable } from './table/node-table';

export interface FleetViewOptions {
  title: string;
  actions: readonly HTMLElement[];
  opener: NodeOpener;
  /** Something else is shown. */
  onShown: (shown: FleetShown) => void;
  /** A node is being opened: what is shown is to be found again. */
  onLeave: () => void;
  invalidate: () => void;
}

/** From this width on there is room for controls side by side. */
const WIDE_PX = 720;
/** The same for all columns of a table. */
const TABLES_PX = 1090;
/** The same for details beside the view; other views have none. */
const BESIDE_PX: Partial<Record<FleetShown['view'], number>> = {
  map: 940,
  nodes: TABLES_PX + 340,
  gpus: TABLES_PX + 340,
};

let views = 0;

export class FleetView {
  readonly element: HTMLElement;
  private readonly head: FleetHead;
  private readonly summary: Summary;
  private readonly controls: Controls;
  private readonly concerns: Concerns;
  private readonly detail: Detail;
  private readonly map: HeatMap;
  private readonly legend = new Legend();
  private readonly gpus: FleetTable;
  private readonly nodes: FleetTable;
  private readonly owners: OwnerView;
  private readonly free: FreeView;
  private readonly events: EventView;
  private readonly nothing: HTMLElement;
  private readonly skeleton = h('div', { class: 'gpumon-fleet-skeleton', 'aria-hidden': 'true' });
  private readonly panel: HTMLElement;
  private readonly body: HTMLElement;
  private readonly spoken = new Spoken();
  private readonly selection = new Selection();
  private readonly links: NodeLinks;
  private readonly stopWidth: () => void;
  private width_px = 0;
  private palette: Palette | null = null;
  private pointed: number | null = null;
  private scrollTo: number | null = null;

  private readonly columns = remembered(columnsOf);
  private readonly filter = remembered(parseFilter);
  private readonly matched = remembered((filter: Filter, columns: Columns) =>
    filter.match(columns),
  );
  private readonly rowsInOrder = remembered(rowOrder);
  private readonly nodesInOrder = remembered(nodeOrder);
  private readonly rowsShown = remembered((order: Uint32Array, shown: Uint8Array | null) =>
    shown === null ? order : order.filter((row) => shown[row] === 1),
  );
  private readonly nodesShown = remembered(
    (order: Uint32Array, columns: Columns, shown: Uint8Array | null) =>
      shown === null
        ? order
        : order.filter((node) => columns.rowsOf(node).some((row) => shown[row] === 1)),
  );
  private readonly nodeSet = remembered((nodes: Uint32Array) => new Set(nodes));
  private readonly totals = remembered(totalsOf);
  private readonly allTotals = remembered((columns: Columns) => totalsOf(columns, null));
  private readonly concernList = remembered(concernsOf);

  constructor(
    private readonly reader: Reader,
    private shown: FleetShown,
    private readonly options: FleetViewOptions,
  ) {
    adoptStyle(style);
    const id = `gpumon-fleet-${(views += 1)}`;
    const choose = (word: string): void =>
      this.change({ filter: toggledWord(this.shown.filter, word) });
    this.links = new NodeLinks(options.opener, options.onLeave);
    this.head = new FleetHead({
      title: options.title,
      actions: options.actions,
      onRetry: () => reader.retry(),
    });
    this.summary = new Summary(choose);
    this.controls = new Controls(
      id,
      (changes) => this.change(changes),
      () => this.focusContent(),
    );
    this.concerns = new Concerns(choose);
    const close = button(
      {
        class: 'gpumon-detail-close',
        'aria-label': trans.__('Close'),
        title: trans.__('Select none (Escape)'),
      },
      () => this.select(null),
      '×',
    );
    this.detail = new Detail(this.links, close);
    const onSort = (key: FleetShown['sort']['key']): void =>
      this.change({ sort: sortedBy(this.shown.sort, key) });
    this.map = new HeatMap({
      onPoint: (row) => {
        this.pointed = row;
        options.invalidate();
      },
      onSelect: (row, by) => this.select(row, by === 'keys'),
      onOpen: (row) => this.openNode(this.known()?.node[row]),
    });
    this.gpus = gpuTable(this.links, {
      onSort,
      onSelect: (row) => this.select(row, true),
      onOpen: (row) => this.openNode(this.known()?.node[row]),
    });
    this.nodes = nodeTable(this.links, {
      onSort,
      onSelect: (node) => this.selectNode(node),
      onOpen: (node) => this.openNode(node),
    });
    this.owners = new OwnerView(
      (key) => this.change({ owners: sortedBy(this.shown.owners, key) }),
      (word) => this.change({ view: 'map', filter: word }),
    );
    this.free = new FreeView(this.links, (wanted) => this.change({ wanted }));
    this.events = new EventView(this.links);
    this.nothing = h(
      'div',
      { class: 'gpumon-fleet-nothing', 'data-testid': 'gpumon-fleet-nothing' },
      h('p', {}, trans.__('Nothing matches this filter.')),
      button(
        { class: 'gpumon-fleet-chip' },
        () => this.change({ filter: '' }),
        trans.__('Clear filter'),
      ),
    );
    const main = h(
      'div',
      { class: 'gpumon-fleet-main' },
      this.concerns.element,
      this.skeleton,
      this.nothing,
      this.map.element,
      this.legend.element,
      this.nodes.element,
      this.gpus.element,
      this.owners.element,
      this.free.element,
      this.events.element,
    );
    const side = h('aside', { class: 'gpumon-fleet-side' }, this.detail.element);
    setAttribute(side, 'aria-label', trans.__('Details'));
    this.panel = h(
      'div',
      { class: 'gpumon-fleet-panel', id: `${id}-panel`, role: 'tabpanel' },
      main,
      side,
    );
    this.body = h(
      'div',
      { class: 'gpumon-fleet-body' },
      this.summary.element,
      this.controls.element,
      this.panel,
    );
    this.element = h(
      'div',
      { class: 'gpumon gpumon-fleet-view', tabindex: '-1', 'data-testid': 'gpumon-fleet' },
      this.head.element,
      this.head.notice,
      this.body,
      this.spoken.element,
    );
    this.element.addEventListener('keydown', (event) => this.onKey(event));
    this.stopWidth = observeWidth(this.element, (width_px) => {
      this.width_px = width_px;
      options.invalidate();
    });
  }

  render(): void {
    const { reader, shown } = this;
    const { answers } = reader;
    const now_ms = Date.now();
    const palette = this.currentPalette();
    const state = this.head.update(answers, now_ms);
    setAttribute(this.element, 'data-state', state);
    const has = (room_px: number): string => (this.width_px >= room_px ? 'wide' : 'compact');
    setAttribute(this.element, 'data-layout', has(WIDE_PX));
    setAttribute(this.element, 'data-tables', has(TABLES_PX));
    setAttribute(this.element, 'data-details', has(BESIDE_PX[shown.view] ?? Infinity));
    setAttribute(this.element, 'data-view', shown.view);
    setShown(this.body, state !== 'error');
    this.spoken.state(state);
    const columns = this.known();
    const range = duration(RANGES[shown.range] * 1000);
    const filter = this.filter(shown.filter);
    if (columns === null) {
      this.showContent(null);
      this.summary.update({ totals: null, answers, filter: shown.filter, range, palette });
      this.controls.update({ shown, byGpu: true, matching: null, mistakes: filter.mistakes });
      setShown(this.skeleton, state === 'loading');
      return;
    }
    const matches = this.matched(filter, columns);
    const totals = this.totals(columns, matches);
    const all = this.allTotals(columns);
    const selected = this.selection.row(columns, shown.selected);
    const order = this.nodesInOrder(columns, shown.sort);
    const nodes = this.nodesShown(order, columns, matches);
    this.summary.update({ totals: all, answers, filter: shown.filter, range, palette });
    this.controls.update({
      shown,
      byGpu: columns.byGpu,
      matching: matches === null ? null : [totals.gpus[0] ?? 0, all.gpus[0] ?? 0],
      mistakes: filter.mistakes,
    });
    this.spoken.matching(matches === null ? null : (totals.gpus[0] ?? 0));
    this.showContent(nodes.length);
    this.renderContent(columns, matches, nodes, selected, now_ms, palette, range);
    const pointed = this.pointed !== null && this.pointed < columns.count ? this.pointed : null;
    const row = pointed ?? selected;
    this.concerns.update(this.concernList(columns), shown.filter, columns.fleet.missing.conditions);
    this.detail.update({
      columns,
      row,
      isFiltered: matches !== null,
      isSelected: row !== null && row === selected,
      totals,
      history: answers.history,
      nodeHistory: answers.nodeHistory,
      node: answers.node,
      range,
      palette,
    });
    this.spoken.selected(selected === null ? null : () => this.spokenText(columns, selected));
    this.restoreScroll();
  }

  /** Shows what another address says. */
  show(shown: FleetShown): void {
    this.shown = shown;
    this.options.invalidate();
  }

  /** Scrolls there as soon as there is something to see. */
  scrollWhenReady(top: number): void {
    this.scrollTo = top;
    this.options.invalidate();
  }

  themeChanged(): void {
    this.palette = null;
    this.options.invalidate();
  }

  revealAll(): void {
    // All of it is drawn anyway.
  }

  dispose(): void {
    this.stopWidth();
    for (const part of [
      this.summary,
      this.detail,
      this.map,
      this.gpus,
      this.nodes,
      this.owners,
      this.free,
      this.events,
    ]) {
      part.dispose();
    }
    this.element.remove();
  }

  private renderContent(
    columns: Columns,
    matches: Uint8Array | null,
    nodes: Uint32Array,
    selected: number | null,
    now_ms: number,
    palette: Palette,
    range: string,
  ): void {
    const { shown, reader } = this;
    const { view, metric, sort } = shown;
    if (view === 'map') {
      this.map.update({ columns, metric, nodes, shown: matches, selected }, palette);
      this.legend.update(metric, missingText(columns, metric));
    } else if (this.isNodes(columns)) {
      const node = selected === null ? null : (columns.node[selected] ?? null);
      this.nodes.update(columns, nodes, sort, node);
    } else if (view === 'gpus') {
      const rows = this.rowsShown(this.rowsInOrder(columns, sort), matches);
      this.gpus.update(columns, rows, sort, selected);
    } else if (view === 'free') {
      this.free.update(columns, shown.wanted, matches);
    } else if (view === 'events') {
      this.events.update(
        columns,
        reader.answers.events,
        matches === null ? null : this.nodeSet(nodes),
        now_ms,
      );
    } else if (isGrouping(view)) {
      this.owners.update({
        grouping: view,
        columns,
        usage: reader.answers.usage,
        filter: shown.filter,
        sort: shown.owners,
        range,
        now_ms,
      });
    }
  }

  /** Shows the part that was chosen; `null` while nothing is known, 0 where nothing matches. */
  private showContent(matching: number | null): void {
    const { view } = this.shown;
    const columns = this.known();
    const isEmpty = matching === 0 && ['map', 'nodes', 'gpus'].includes(view);
    const isThere = matching !== null && !isEmpty;
    const isNodes = columns !== null && this.isNodes(columns);
    setShown(this.skeleton, false);
    setShown(this.nothing, isEmpty);
    setShown(this.map.element, isThere && view === 'map');
    setShown(this.concerns.element, matching !== null && ['map', 'nodes', 'gpus'].includes(view));
    setShown(this.legend.element, isThere && view === 'map');
    setShown(this.nodes.element, isThere && isNodes);
    setShown(this.gpus.element, isThere && view === 'gpus' && !isNodes);
    setShown(this.owners.element, isThere && isGrouping(view));
    setShown(this.free.element, isThere && view === 'free');
    setShown(this.events.element, isThere && view === 'events');
    setAttribute(
      this.panel,
      'aria-labelledby',
      `${this.panel.id.replace(/-panel$/, '')}-tab-${view}`,
    );
  }

  /** Where a fleet has nodes alone, they take the place of GPUs. */
  private isNodes({ byGpu }: Columns): boolean {
    return this.shown.view === 'nodes' || (this.shown.view === 'gpus' && !byGpu);
  }

  /** What it shows besides the fleet itself. */
  wishes(): Wishes {
    const { range, view, selected } = this.shown;
    return {
      range_s: RANGES[range],
      usage: true,
      events: view === 'events',
      node: selected?.node ?? null,
    };
  }

  private known(): Columns | null {
    const { value } = this.reader.answers.fleet;
    return value === null || value.state === 'loading' ? null : this.columns(value);
  }

  private change(changes: Partial<FleetShown>): void {
    this.shown = { ...this.shown, ...changes };
    this.options.onShown(this.shown);
    this.options.invalidate();
  }

  private select(row: number | null, isSpoken = false): void {
    const columns = this.known();
    const selected = row === null || columns === null ? null : this.selection.place(columns, row);
    this.spoken.expectSelection(isSpoken);
    this.change({ selected });
  }

  private selectNode(node: number | null): void {
    const [row] = (node === null ? null : this.known()?.rowsOf(node)) ?? [];
    this.select(row ?? null, true);
  }

  private openNode(node: number | undefined): void {
    const columns = this.known();
    if (columns !== null && node !== undefined && !this.links.open(columns, node)) {
      const name = columns.nodeNames[node] ?? '';
      this.spoken.say(
        trans.__('%1 cannot be opened: %2', name, this.links.reason(columns, node) ?? ''),
      );
    }
  }

  private spokenText(columns: Columns, row: number): string {
    const { metric } = this.shown;
    return spokenRow(
      columns,
      row,
      metric === 'conditions' ? [] : [readingText(columns, metric, row)],
    );
  }

  private onKey(event: KeyboardEvent): void {
    const { target } = event;
    const isTyping = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping) {
      return;
    }
    if (event.key === '/') {
      event.preventDefault();
      this.controls.filter.focus();
      this.controls.filter.select();
    } else if (event.key === 'Escape') {
      if (this.shown.selected !== null) {
        this.select(null);
      } else if (this.shown.filter !== '') {
        this.change({ filter: '' });
      }
    }
  }

  /** To what has been found, also where it is not drawn yet: what is hidden takes no focus. */
  private focusContent(): void {
    this.render();
    const { view } = this.shown;
    const columns = this.known();
    if (view === 'map') {
      this.map.focus();
    } else if (columns !== null && this.isNodes(columns)) {
      this.nodes.focus();
    } else if (view === 'gpus') {
      this.gpus.focus();
    } else {
      this.element.focus({ preventScroll: true });
    }
  }

  private restoreScroll(): void {
    if (this.scrollTo !== null) {
      const top = this.scrollTo;
      this.scrollTo = null;
      // The rows and the map have their heights with the next frame.
      requestAnimationFrame(() => window.scrollTo({ top, behavior: 'instant' }));
    }
  }

  private currentPalette(): Palette {
    if (this.palette === null) {
      setAttribute(this.element, 'data-gpumon-scheme', isOnDark(this.element) ? 'dark' : 'light');
      this.palette = readPalette(this.element);
    }
    return this.palette;
  }
}

function isGrouping(view: FleetShown['view']): view is Grouping {
  return GROUPINGS.some((grouping) => grouping === view);
}
