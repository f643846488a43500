/** All GPUs: a few as cards; from six on as one row each, which opens to the card. */

import { h, KeyedRows, setAttribute, setShown } from '../lib/dom';
import type { ScreenObserver } from '../lib/screen';
import { trans } from '../lib/translation';
import { levelRank } from '../model/condition';
import { commonName, type GpuState } from '../model/gpu';
import { gpuAlerts } from '../model/gpu-alerts';
import { filtered, suggestions, type Filtered } from '../model/gpu-filter';
import type { HolderRow } from '../model/holders';
import { isBusy, type Moment } from '../model/summary';
import type { Cursor } from './cursor';
import { FilterField } from './filter-field';
import { GpuCard, type CardContext, type CardOptions } from './gpu-card';
import type { NotebookHost } from './notebook-host';

/** From so many on, comparing them matters more than what each says. */
const ROWS_FROM = 6;
/** More rows than these stand in columns, where there is room. */
const ONE_COLUMN = 16;
/** The columns of the widest screens; heads of those that there are not are cut off. */
const HEADS = 8;

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
  private latest: Filtered = { gpus: [], rows: [] };
  private shown: readonly GpuState[] = [];

  /** `id` begins the names of parts that others refer to. */
  constructor(
    private readonly id: string,
    private readonly cursor: Cursor,
    private readonly screen: ScreenObserver,
    private readonly options: GpuListOptions,
  ) {
    this.filter = new FilterField(options.invalidate, () => suggestions(this.latest.rows, this.nameOf));
    this.element = h('div', { class: 'gpumon-gpu-list' }, this.filter.element, this.heads, this.list);
  }

  /** Writes all that is chosen, and returns it. */
  update(gpus: readonly GpuState[], rows: Filtered['rows'], moment: Moment, context: CardContext): Filtered {
    this.latest = { gpus, rows };
    const asRows = gpus.length >= ROWS_FROM;
    const facts = { isBusy: (gpu: GpuState): boolean => isBusy(gpu, moment), nameOf: this.nameOf };
    const chosen = asRows ? filtered(this.filter.text, gpus, rows, facts) : { gpus, rows };
    const held = (gpu: GpuState): HolderRow[] =>
      rows.filter((row): row is HolderRow => row.kind === 'holder' && row.gpu === gpu.index);
    const rank = ({ store }: CardContext, gpu: GpuState): number =>
      levelRank(gpuAlerts(gpu, held(gpu), store.memoryHorizon_ms, moment.at_ms)[0]?.level ?? 'none');
    const worstFirst = asRows && this.filter.isWorstFirst;
    this.shown = worstFirst
      ? [...chosen.gpus].sort((a, b) => rank(context, a) - rank(context, b) || a.index - b.index)
      : chosen.gpus;
    setShown(this.filter.element, asRows);
    setShown(this.heads, asRows);
    if (asRows) {
      this.filter.update(this.shown.length, gpus.length);
      this.writeHeads();
    }
    const rowLayout: CardContext['rowLayout'] = !asRows ? null : gpus.length > ONE_COLUMN ? 'columns' : 'one';
    setAttribute(this.element, 'data-rows', rowLayout);
    setAttribute(this.element, 'data-same-name', gpus.length > 1 && commonName(gpus) !== null ? '' : null);
    const own = { ...context, rowLayout, openByDefault: context.openByDefault && !asRows };
    this.cards.update(this.shown, (card, gpu) => card.update(gpu, held(gpu), own));
    this.shown.forEach((gpu) => this.cards.get(String(gpu.index))?.draw(gpu, own));
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
    this.cards.update([], () => undefined);
  }

  private readonly nameOf = (kernelId: string): string | null => this.options.notebooks?.nameOf(kernelId) ?? null;

  /** The names of what stands in a row, above each column of rows. */
  private writeHeads(): void {
    if (this.heads.firstChild !== null) {
      return;
    }
    const names = [
      ['index', trans.__('GPU')],
      ['use', trans.__('Util.')],
      ['bar', trans.__('Memory')],
      ['temp', trans.__('Temp.')],
      ['power', trans.__('Power')],
      ['state', trans.__('State')],
    ];
    const head = (): HTMLElement =>
      h('div', {}, ...names.map(([place = '', name = '']) => h('span', { 'data-place': place }, name)));
    this.heads.append(...Array.from({ length: HEADS }, head));
  }

  private newCard(index: number): GpuCard {
    const card = new GpuCard(index, this.cursor, `${this.id}-gpu-${index}`, this.options);
    this.screen.observe(card.element, (onScreen) => card.setOnScreen(onScreen));
    return card;
  }
}
