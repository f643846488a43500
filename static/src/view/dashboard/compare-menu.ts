/** Chooses the earlier span that stands beside the one that is shown. */

import { button, h, setAttribute, setText } from '../../lib/dom';
import { duration } from '../../lib/format';
import { trans } from '../../lib/translation';
import { menu } from '../menu';

const HOUR_MS = 3_600_000;
/** What people compare with. */
const EARLIER_MS = [HOUR_MS, 24 * HOUR_MS, 7 * 24 * HOUR_MS] as const;

export class CompareMenu {
  readonly element: HTMLDetailsElement;
  private readonly label = h('span', {}, trans.__('Compare'));
  private readonly off: HTMLButtonElement;
  private readonly begin = h('input', {
    type: 'datetime-local',
    step: '1',
    'aria-label': trans.__('Beginning of the other span'),
  });
  private from_ms = 0;

  /** `change` is called with how much earlier the other span is; `null` for none. */
  constructor(change: (by_ms: number | null) => void) {
    const close = (by_ms: number | null) => (): void => {
      this.element.open = false;
      change(by_ms);
    };
    this.off = button({ class: 'gpumon-chip' }, close(null), trans.__('Stop comparing'));
    const usual = EARLIER_MS.map((by_ms) =>
      button({ class: 'gpumon-chip' }, close(by_ms), trans.__('%1 earlier', duration(by_ms))),
    );
    const form = h(
      'form',
      { class: 'gpumon-compare-form' },
      h('label', {}, trans.__('From another time:'), this.begin),
      h('button', { class: 'gpumon-chip' }, trans.__('Compare')),
    );
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      const by_ms = this.from_ms - new Date(this.begin.value).getTime();
      if (by_ms > 0) {
        close(by_ms)();
      } else {
        this.begin.setCustomValidity(trans.__('Choose a time before the span that is shown.'));
        this.begin.reportValidity();
      }
    });
    this.begin.addEventListener('input', () => this.begin.setCustomValidity(''));
    const choices = h('div', { class: 'gpumon-group-of-chips' }, ...usual, this.off);
    this.element = menu(this.label, h('div', {}, choices, form));
  }

  /** `by_ms` is how much earlier the other span is; `from_ms` is where the one that is shown begins. */
  update(by_ms: number | null, from_ms: number): void {
    this.from_ms = from_ms;
    setText(
      this.label,
      by_ms === null ? trans.__('Compare') : trans.__('Compared: %1 earlier', duration(by_ms)),
    );
    setAttribute(this.off, 'aria-pressed', String(by_ms === null));
  }
}
