/** All GPUs: a few as cards; from six on as one row each, which opens to the card. */

import { h, KeyedRows, setAttribute, setShown, setStyle } from '../lib/dom';
import { grouped } from '../lib/grouped';
import { observeWidth, type ScreenObserver } from '../lib/screen';
import { table, trans } from '../lib/translation';
import { levelRank } from '../model/condition';
import { commonName, type GpuState } from '../model/gpu';
import { gpuAlerts } from '../model/gpu-alerts';
import { filtered, suggestions, type Filtered } from '../model/gpu-filter';
import type { HolderRow } from '../model/holders';
import { isBusy } from '../model/summary';
import type { Cursor } from './cursor';
import { FilterField } from './filter-field';
import { GpuCard, type CardContext, type CardOptions } from './gpu-card';
import type { NotebookHost } from './notebook-host';

/** From so many on, comparing them matters more than what each says. */
const ROWS_FROM = 6;
/** More rows than these stand in columns, where there is room. */
const ONE_COLUMN = 16;
/** The least width of such a column. */
const COLUMN_PX = 400;

/** The names of what stands in a row. */
const HEADS = table(() => ({
  index: trans.__('GPU'),
  use: trans.__('Util.'),
  bar: trans.__('Memory'),
  temp: trans.__('Temp.'),
  power: trans.__('Power'),
  state: trans.__('State'),
}));

export interface GpuListOptions extends CardOptions {
  notebooks?: NotebookHost;
}

export class GpuList {
  readonly element: HTMLElement;
  private readonly heads = h('div', { class: 'gpumon-row-heads', 'aria-hidden': 'true' });
  private readonly list = h('div', { class: 'gpumon-gpus' });
  private readonly filter: FilterField;
  private readonly cards = new KeyedRows(
    this.list,
    ({ index }: GpuState) => String(index),
    ({ index }) => this.newCard(index),
    (card) => {
      this.screen.unobserve(card.element);
      card.dispose();
    },
  );
  private rows: Filtered['rows'] = [];
  /** How many columns of rows there is room for. */
  private columns = 1;
  private readonly stopWidth: () => void;

  /** `id` begins the names of parts that others refer to. */
  constructor(
    private readonly id: string,
    private readonly cursor: Cursor,
    private readonly screen: ScreenObserver,
    private readonly options: GpuListOptions,
  ) {
    this.filter = new FilterField(options.invalidate, () => suggestions(this.rows));
    this.element = h(
      'div',
      { class: 'gpumon-gpu-list' },
      this.filter.element,
      this.heads,
      this.list,
    );
    this.stopWidth = observeWidth(this.list, (width_px) => {
      const columns = Math.max(1, Math.floor(width_px / COLUMN_PX));
      if (columns !== this.columns) {
        this.columns = columns;
        options.invalidate();
      }
    });
  }

  /** Writes all that is chosen, and returns it. */
  update(
    gpus: readonly GpuState[],
    rows: Filtered['rows'],
    now_ms: number,
    context: Omit<CardContext, 'rowLayout'>,
  ): Filtered {
    this.rows = rows;
    const asRows = gpus.length >= ROWS_FROM;
    const { store } = context;
    const moment = { at_ms: now_ms, timeline: store.timeline };
    const facts = { isBusy: (gpu: GpuState): boolean => isBusy(gpu, moment) };
    const chosen = asRows ? filtered(this.filter.text, gpus, rows, facts) : { gpus, rows };
    const holders = grouped(
      rows.filter((row) => row.kind === 'holder'),
      ({ gpu }) => gpu,
    );
    const held = ({ index }: GpuState): readonly HolderRow[] => holders.get(index) ?? [];
    const shown =
      asRows && this.filter.isWorstFirst
        ? sortedBy(chosen.gpus, (gpu) =>
            levelRank(gpuAlerts(gpu, held(gpu), store, now_ms)[0]?.level ?? 'none'),
          )
        : chosen.gpus;
    setShown(this.filter.element, asRows);
    setShown(this.heads, asRows);
    if (asRows) {
      this.filter.update(shown.length, gpus.length);
    }
    const rowLayout: CardContext['rowLayout'] = !asRows
      ? null
      : gpus.length > ONE_COLUMN
        ? 'columns'
        : 'one';
    setAttribute(this.element, 'data-rows', rowLayout);
    setAttribute(
      this.element,
      'data-same-name',
      gpus.length > 1 && commonName(gpus) !== null ? '' : null,
    );
    setStyle(this.element, '--_columns', String(this.columns));
    const own = { ...context, rowLayout, openByDefault: context.openByDefault && !asRows };
    this.cards.update(shown, (card, gpu) => card.update(gpu, held(gpu), own));
    shown.forEach((gpu) => this.cards.get(String(gpu.index))?.draw(gpu, own));
    if (asRows) {
      this.writeHeads(rowLayout === 'columns' ? this.usedColumns() : 1);
    }
    return chosen;
  }

  highlight(row: HolderRow | null): void {
    for (const card of this.cards.all) {
      card.highlight(row?.gpu === card.gpuIndex ? row.key : null);
    }
  }

  revealAll(): void {
    this.cards.all.forEach((card) => card.reveal());
  }

  dispose(): void {
    this.stopWidth();
    this.cards.update([], () => undefined);
  }

  /** The columns that have rows, above the first open card: all have as many rows, and the last of them the rest. */
  private usedColumns(): number {
    const cards = [...this.list.children];
    const open = cards.findIndex((card) => !card.hasAttribute('data-row'));
    const rows = Math.max(1, open < 0 ? cards.length : open);
    return Math.ceil(rows / Math.ceil(rows / this.columns));
  }

  /** The names of what stands in a row, above each of so many columns of rows. */
  private writeHeads(count: number): void {
    while (this.heads.children.length > count) {
      this.heads.lastElementChild?.remove();
    }
    while (this.heads.children.length < count) {
      const names = Object.entries(HEADS()).map(([place, name]) => {
        const element = h('span', { 'data-place': place }, name);
        setStyle(element, 'grid-area', place);
        return element;
      });
      this.heads.append(h('div', {}, ...names));
    }
  }

  private newCard(index: number): GpuCard {
    const card = new GpuCard(index, this.cursor, `${this.id}-gpu-${index}`, this.options);
    this.screen.observe(card.element, (onScreen) => card.setOnScreen(onScreen));
    return card;
  }
}

/** By a number that is asked for once of each; equals stay in their order. */
function sortedBy<T>(all: readonly T[], worth: (one: T) => number): T[] {
  return all
    .map((one) => [worth(one), one] as const)
    .sort(([a], [b]) => a - b)
    .map(([, one]) => one);
}
