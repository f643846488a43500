/** The values of a chart's lines at the moment pointed at, beside the pointer. */

import { h, KeyedRows, setAttribute, setShown, setStyle, setText } from '../../lib/dom';
import { trans } from '../../lib/translation';
import type { Color } from '../../model/metric';
import { setStripes } from '../palette';

/** As the style sheet has it. */
export const TOOLTIP_PX = 200;
/** Where values have ranges. */
export const WIDE_TOOLTIP_PX = 290;
/** What it keeps from the pointer. */
const APART_PX = 14;

export interface TooltipRow {
  id: string;
  label: string;
  color: string;
  /** The color by its name or number, which says whether it is striped. */
  paint: Color;
  text: string;
  /** From the lowest to the highest reading that `text` is the mean of; empty where it is a reading. */
  range: string;
  /** Whether it is of the line pointed at. */
  near: boolean;
}

/** What is marked there. */
export interface TooltipNote {
  text: string;
  color: string;
}

export interface TooltipPlace {
  /** In pixels from the left edge of the chart. */
  x_px: number;
  width_px: number;
  /** To which side it opens. */
  toLeft: boolean;
  upward: boolean;
}

/** One for all charts of a view, since there is one pointer. */
export class Tooltip {
  private readonly time = h('div', { class: 'gpumon-tooltip-time' });
  private readonly means = h(
    'div',
    { class: 'gpumon-missing' },
    trans.__('mean, lowest – highest'),
  );
  private readonly list = h('div', { class: 'gpumon-tooltip-rows' });
  private readonly rows = new KeyedRows(
    this.list,
    ({ id }: TooltipRow) => id,
    () => new Row(),
  );
  private readonly notes = h('div', { class: 'gpumon-tooltip-notes' });
  private readonly noteRows = new KeyedRows(
    this.notes,
    ({ text }: TooltipNote) => text,
    ({ text }) => {
      const swatch = h('span', { class: 'gpumon-swatch' });
      return { swatch, element: h('div', {}, swatch, h('span', {}, text)) };
    },
  );
  private readonly more = h('div', { class: 'gpumon-missing' });
  /** What legends say, too. */
  private readonly element = h(
    'div',
    { class: 'gpumon-tooltip', 'aria-hidden': 'true' },
    this.time,
    this.means,
    this.list,
    this.more,
    this.notes,
  );

  show(
    host: HTMLElement,
    place: TooltipPlace,
    /** What the moment is called. */
    moment: string,
    rows: readonly TooltipRow[],
    more: number,
    notes: readonly TooltipNote[],
  ): void {
    if (this.element.parentElement !== host) {
      host.append(this.element);
    }
    const { x_px, width_px, toLeft, upward } = place;
    setStyle(this.element, 'left', toLeft ? 'auto' : `${x_px + APART_PX}px`);
    setStyle(this.element, 'right', toLeft ? `${width_px - x_px + APART_PX}px` : 'auto');
    setStyle(this.element, 'top', upward ? 'auto' : '0');
    setStyle(this.element, 'bottom', upward ? '0' : 'auto');
    setText(this.time, moment);
    const areMeans = rows.some(({ range }) => range !== '');
    setShown(this.means, areMeans);
    setAttribute(this.element, 'data-means', areMeans ? '' : null);
    this.rows.update(rows, (row, value) => row.update(value));
    setShown(this.more, more > 0 || rows.length === 0);
    setText(
      this.more,
      rows.length === 0 ? trans.__('no sample at this time') : trans.__('%1 more', more),
    );
    this.noteRows.update(notes, ({ swatch }, { color }) => setStyle(swatch, 'background', color));
  }

  hide(host: HTMLElement): void {
    if (this.element.parentElement === host) {
      this.element.remove();
    }
  }
}

class Row {
  private readonly swatch = h('span', { class: 'gpumon-swatch' });
  private readonly label = h('span', { class: 'gpumon-readout-name' });
  private readonly value = h('span', { class: 'gpumon-tooltip-value' });
  private readonly range = h('span', { class: 'gpumon-tooltip-range' });
  readonly element = h('div', {}, this.swatch, this.label, this.value, this.range);

  update({ label, color, paint, text, range, near }: TooltipRow): void {
    setStyle(this.swatch, '--_swatch', color);
    setStripes(this.swatch, paint);
    setText(this.label, label);
    setText(this.value, text);
    setText(this.range, range);
    setShown(this.range, range !== '');
    setAttribute(this.element, 'data-near', near ? '' : null);
  }
}
