/** One field that chooses what is shown, with suggestions, and a switch for the order. Both are kept. */

import { button, h, setAttribute, setShown, setText } from '../lib/dom';
import { Stored } from '../lib/stored';
import { trans } from '../lib/translation';

let fields = 0;

export class FilterField {
  readonly element: HTMLElement;
  private readonly typed = new Stored('gpumon-filter');
  private readonly order = new Stored('gpumon-order');
  private readonly input: HTMLInputElement;
  private readonly options = h('datalist', { id: `gpumon-filter-${(fields += 1)}` });
  private readonly count = h('span', {
    class: 'gpumon-filter-count',
    'data-testid': 'gpumon-filter-count',
  });
  private readonly worst: HTMLElement;

  /** `suggest` tells what may be typed; it is asked when somebody begins to. */
  constructor(invalidate: () => void, suggest: () => readonly string[]) {
    this.input = h('input', {
      class: 'gpumon-filter-text',
      type: 'search',
      list: this.options.id,
      placeholder: trans.__('Filter GPUs'),
      'aria-label': trans.__('Filter GPUs'),
      title: trans.__(
        'Words that all have to match: busy, idle, mine, user, notebook, program, PID, GPU index or name',
      ),
    });
    this.input.value = this.typed.get() ?? '';
    this.input.addEventListener('focus', () => {
      this.options.replaceChildren(...suggest().map((value) => h('option', { value })));
    });
    this.input.addEventListener('input', () => {
      this.typed.set(this.input.value || null);
      invalidate();
    });
    this.worst = button(
      { class: 'gpumon-chip', title: trans.__('Show GPUs with alerts first') },
      () => {
        this.order.set(this.isWorstFirst ? null : 'worst');
        invalidate();
      },
      trans.__('Worst first'),
    );
    this.element = h(
      'div',
      { class: 'gpumon-filter', role: 'search' },
      this.input,
      this.options,
      this.count,
      this.worst,
    );
  }

  get text(): string {
    return this.input.value;
  }

  get isWorstFirst(): boolean {
    return this.order.get() !== null;
  }

  /** So many GPUs of `all` are shown. */
  update(shown: number, all: number): void {
    setAttribute(this.worst, 'aria-pressed', String(this.isWorstFirst));
    setShown(this.count, this.text.trim() !== '');
    setText(this.count, trans.__('%1 of %2', shown, all));
  }
}
