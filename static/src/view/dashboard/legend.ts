/** The names of a chart's lines with their values; of many lines, the extreme ones, and the rest on request. */

import { button, h, KeyedRows, setAttribute, setShown, setStyle, setText } from '../../lib/dom';
import { trans } from '../../lib/translation';
import { Extremes } from '../../model/dashboard/legend';
import type { PlotLine } from '../../model/dashboard/plots';
import type { Unit } from '../../model/unit';
import { menu } from '../menu';
import { colorOf, setStripes } from '../palette';
import { ReadingValue } from '../value';
import { pastValue, shownValue, type PlotContext } from './context';

export interface LegendListener {
  /** A line is pointed at by its name, or none any more. */
  onPoint: (id: string | null) => void;
  /** One is to be seen alone, or with all others again. */
  onIsolate: (id: string, legend: readonly string[]) => void;
  /** One is to be hidden, or shown again. */
  onToggle: (id: string, legend: readonly string[]) => void;
}

/** So many lines are all named. */
export const ALL_NAMED = 8;
/** Of more lines, so many chosen ones are. */
const CHOSEN_NAMED = 2;

export class Legend {
  readonly element = h('div', {
    class: 'gpumon-legend',
    role: 'group',
    title: trans.__('Click: only this line. Ctrl+click or Shift+click: hide it.'),
  });
  private readonly named = h('div', { class: 'gpumon-readouts' });
  private readonly namedRows = this.rowsIn(this.named);
  /** Made where there are many lines: most charts have few. */
  private rest: Rest | null = null;
  private readonly extremes = new Extremes();
  private ids: readonly string[] = [];

  constructor(
    private readonly listener: LegendListener,
    private readonly invalidate: () => void,
  ) {
    this.element.append(this.named);
  }

  /** `range` is that of the axis. */
  update(lines: readonly PlotLine[], unit: Unit, range: number, context: PlotContext): void {
    this.ids = lines.map(({ id }) => id);
    const isLong = lines.length > ALL_NAMED;
    const { named, areExtremes } = isLong
      ? this.foremost(lines, range, context)
      : { named: lines, areExtremes: false };
    const notes = areExtremes ? [trans.__('max'), trans.__('min')] : [];
    const write = (row: Entry, line: PlotLine): void =>
      row.update(line, unit, context, notes[named.indexOf(line)]);
    this.namedRows.update(named, write);
    if (isLong) {
      this.rest ??= this.newRest();
      setText(this.rest.label, trans.__('%1 more', lines.length - named.length));
    }
    if (this.rest !== null) {
      const { menu: more, rows } = this.rest;
      setShown(more, isLong);
      rows.update(isLong && more.open ? lines : [], (row, line) => row.update(line, unit, context));
    }
  }

  private newRest(): Rest {
    const label = h('span');
    const all = h('div', { class: 'gpumon-readouts' });
    const more = menu(label, h('div', {}, all));
    more.addEventListener('toggle', this.invalidate);
    this.element.append(more);
    return { label, menu: more, rows: this.rowsIn(all) };
  }

  /** The few that somebody chose, or else those with the highest and the lowest value. */
  private foremost(
    lines: readonly PlotLine[],
    range: number,
    context: PlotContext,
  ): { named: readonly PlotLine[]; areExtremes: boolean } {
    const shown = lines.filter(({ id }) => !context.hidden.has(id));
    if (shown.length <= CHOSEN_NAMED) {
      return { named: shown, areExtremes: false };
    }
    const valued = shown.map((line) => ({ id: line.id, value: shownValue(line, context) }));
    const ids = this.extremes.of(valued, range);
    return {
      named: ids.flatMap((id) => shown.filter((line) => line.id === id)),
      areExtremes: true,
    };
  }

  private rowsIn(parent: HTMLElement): KeyedRows<PlotLine, Entry> {
    return new KeyedRows(
      parent,
      ({ series }) => series,
      (line) => this.newEntry(line),
    );
  }

  private newEntry({ id, series }: PlotLine): Entry {
    return new Entry(series, {
      onPoint: (pointed) => this.listener.onPoint(pointed ? id : null),
      onClick: (hides) => (hides ? this.listener.onToggle : this.listener.onIsolate)(id, this.ids),
    });
  }
}

/** What opens to all lines. */
interface Rest {
  label: HTMLElement;
  menu: HTMLDetailsElement;
  rows: KeyedRows<PlotLine, Entry>;
}

interface EntryListener {
  onPoint: (pointed: boolean) => void;
  /** `hides` is to hide it alone. */
  onClick: (hides: boolean) => void;
}

/** The name of a line and its value, of now or of the moment pointed at. */
class Entry {
  readonly element: HTMLElement;
  private readonly note = h('span', { class: 'gpumon-readout-note' });
  private readonly label = h('span', { class: 'gpumon-readout-name' });
  private readonly swatch = h('span', { class: 'gpumon-swatch', 'aria-hidden': 'true' });
  private readonly value: ReadingValue;
  private color = '';

  constructor(series: string, { onPoint, onClick }: EntryListener) {
    this.value = new ReadingValue(series);
    const hides = (event: MouseEvent | KeyboardEvent): boolean =>
      event.ctrlKey || event.metaKey || event.shiftKey;
    this.element = button(
      {},
      (event) => onClick(hides(event)),
      this.note,
      this.swatch,
      this.label,
      this.value.element,
    );
    this.element.addEventListener('keydown', (event) => {
      // Not every browser makes a click of a key with a modifier.
      if ((event.key === 'Enter' || event.key === ' ') && hides(event)) {
        event.preventDefault();
        onClick(true);
      }
    });
    this.element.addEventListener('pointerenter', () => onPoint(true));
    this.element.addEventListener('pointerleave', () => onPoint(false));
  }

  /** `note` says why it is named. */
  update(line: PlotLine, unit: Unit, context: PlotContext, note = ''): void {
    const { at_ms, hidden } = context;
    setText(this.note, note);
    setText(this.label, line.label);
    setAttribute(this.element, 'aria-pressed', String(!hidden.has(line.id)));
    const color = colorOf(context.palette, line.color);
    if (color !== this.color) {
      this.color = color;
      setStyle(this.swatch, '--_swatch', color);
      setStripes(this.swatch, line.color);
    }
    if (at_ms === null) {
      this.value.update(line.now, unit.text, context.freshness);
      return;
    }
    const past = pastValue(line, at_ms, context);
    this.value.showPast(Number.isNaN(past) ? null : unit.text(past));
  }
}
