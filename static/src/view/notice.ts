/** Explains a state: what is wrong, and what to do. */

import { h, setAttribute, setShown, setText } from '../lib/dom';
import type { Status } from '../model/status';
import type { Diagnosis } from '../model/store';

export class Notice {
  readonly element: HTMLElement;
  private readonly title = h('h2');
  private readonly message = h('p');
  private readonly command = h('pre', { class: 'gpumon-command', tabindex: '0' });

  constructor() {
    this.element = h(
      'section',
      { class: 'gpumon-notice', 'data-testid': 'gpumon-notice' },
      this.title,
      this.message,
      this.command,
    );
  }

  /** Shows a notice; `null` shows none. */
  update(notice: Diagnosis | null, level: Status['level']): void {
    setShown(this.element, notice !== null);
    setAttribute(this.element, 'data-level', level);
    setText(this.title, notice?.title ?? '');
    setText(this.message, notice?.message ?? '');
    setText(this.command, notice?.command ?? '');
    setShown(this.command, notice?.command !== undefined);
  }
}
