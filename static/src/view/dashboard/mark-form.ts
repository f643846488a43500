/** Where somebody marks a moment, which then stands on the charts of everybody. */

import { h, setText } from '../../lib/dom';
import { timeOfDay } from '../../lib/format';
import { trans } from '../../lib/translation';
import { answerOf, OWN_HEADERS, type Request } from '../../model/request';
import type { Markers } from '../event-markers';
import { menu } from '../menu';
import type { Palette } from '../palette';

export interface MarkFormOptions {
  request: Request;
  /** Now, where no chart is pointed at. */
  momentPointedAt: () => number;
  /** The moment that is about to be marked is another, or none. */
  onChange: () => void;
  /** It is marked. */
  onDone: () => void;
}

/** As the server has it. */
const LONGEST_TEXT = '100';

export class MarkForm {
  readonly element: HTMLDetailsElement;
  private readonly time = h('span');
  private readonly text = h('input', {
    type: 'text',
    required: '',
    maxlength: LONGEST_TEXT,
    'aria-label': trans.__('Text of the mark'),
    placeholder: trans.__('Text, as: epoch 3'),
  });
  private readonly submit = h('button', { class: 'gpumon-chip' }, trans.__('Add'));
  private readonly error = h('p', { role: 'alert' });
  private at_ms: number | null = null;

  constructor(private readonly options: MarkFormOptions) {
    const form = h(
      'form',
      { class: 'gpumon-mark-form' },
      h('p', { class: 'gpumon-missing' }, this.time),
      this.text,
      this.submit,
      this.error,
    );
    this.element = menu(trans.__('Add mark…'), h('div', {}, form));
    this.element.addEventListener('toggle', () => this.toggled());
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      void this.send();
    });
  }

  /** Asks for the text of a mark at the moment that is pointed at just now. */
  open(): void {
    this.begin();
    this.element.open = true;
    // What is typed next is the text; the event of the menu comes later.
    this.text.focus();
  }

  /** With the moment that is about to be marked. */
  withDraft(markers: Markers, palette: Palette): Markers {
    const { at_ms } = this;
    return at_ms === null
      ? markers
      : {
          ...markers,
          ofAll: [...markers.ofAll, { at_ms, color: palette.text, label: this.text.value || '…' }],
        };
  }

  private begin(): void {
    this.at_ms = this.options.momentPointedAt();
    setText(this.error, '');
    setText(this.time, trans.__('At %1, on the charts of everybody', timeOfDay(this.at_ms)));
  }

  private toggled(): void {
    if (!this.element.open) {
      this.at_ms = null;
    } else {
      if (this.at_ms === null) {
        this.begin();
      }
      this.text.focus();
    }
    this.options.onChange();
  }

  private async send(): Promise<void> {
    const { at_ms } = this;
    const body = JSON.stringify({ text: this.text.value, at_ms: Math.round(at_ms ?? 0) });
    this.submit.disabled = true;
    const { why } = await answerOf(
      this.options.request('api/v1/marks', { method: 'POST', headers: OWN_HEADERS, body }),
    );
    this.submit.disabled = false;
    setText(this.error, why ?? '');
    if (why === null) {
      this.text.value = '';
      this.element.open = false;
      this.options.onDone();
    }
  }
}
