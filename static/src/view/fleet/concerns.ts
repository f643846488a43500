/** What is wrong, and with how many GPUs: each condition chooses its own. */

import { button, h, KeyedRows, setAttribute, setShown, setText } from '../../lib/dom';
import { count } from '../../lib/format';
import { trans } from '../../lib/translation';
import { conditionText, conditionTitle, levelOf } from '../../model/fleet/describe';
import { hasWord } from '../../model/fleet/filter';
import type { Concern } from '../../model/fleet/totals';
import { severityIcon, severityLabel } from '../severity-icon';

/** What is listed first matters most. */
const SHOWN_MOST = 12;

export class Concerns {
  readonly element: HTMLElement;
  private readonly list = h('ul', { class: 'gpumon-concerns' });
  private readonly none = h('p', { class: 'gpumon-empty' }, trans.__('None'));
  private readonly rows: KeyedRows<Concern, Row>;

  constructor(choose: (word: string) => void) {
    this.rows = new KeyedRows(
      this.list,
      ({ kind }) => kind,
      ({ kind }) => new Row(kind, () => choose(wordOf(kind))),
    );
    const heading = h('h2', { id: 'gpumon-fleet-concerns' }, trans.__('Conditions'));
    this.element = h(
      'section',
      { class: 'gpumon-fleet-concerns', 'aria-labelledby': heading.id },
      heading,
      this.list,
      this.none,
    );
  }

  /** `missing` says why conditions are not told. */
  update(concerns: readonly Concern[], filter: string, missing: string | undefined): void {
    setShown(this.none, concerns.length === 0);
    setText(this.none, missing ?? trans.__('None'));
    this.rows.update(concerns.slice(0, SHOWN_MOST), (row, concern) => row.update(concern, filter));
  }
}

class Row {
  readonly element: HTMLElement;
  private readonly button: HTMLElement;
  private readonly level = h('span', { class: 'gpumon-visually-hidden' });
  private readonly text = h('span', { class: 'gpumon-concern-text' });
  private readonly many = h('span', { class: 'gpumon-concern-count' });

  constructor(kind: string, onClick: () => void) {
    this.button = button(
      { class: 'gpumon-concern', 'data-concern': kind },
      onClick,
      severityIcon(),
      this.level,
      this.text,
      this.many,
    );
    this.element = h('li', {}, this.button);
  }

  update({ kind, severity, count: many }: Concern, filter: string): void {
    const level = levelOf(severity);
    setAttribute(this.button, 'data-level', level);
    setAttribute(this.button, 'aria-pressed', String(hasWord(filter, wordOf(kind))));
    const title = conditionTitle(kind);
    setAttribute(this.button, 'title', title === '' ? null : title);
    setText(this.level, severityLabel(level));
    setText(this.text, conditionText(kind));
    setText(this.many, count(many));
  }
}

/** The word of the filter that finds those GPUs. */
function wordOf(kind: string): string {
  return `condition:${kind}`;
}
