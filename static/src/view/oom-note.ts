/** The explanation below a cell that ran out of GPU memory. It stays until the cell runs again. */

import { button, h, KeyedRows, setAttribute, setShown, setText } from '../lib/dom';
import { trans } from '../lib/translation';
import type { OomHolder, OomDescription } from '../model/describe-oom';
import type { NotebookHost } from './notebook-host';

export class OomNote {
  readonly element = h('div', { class: 'gpumon-oom', 'data-testid': 'gpumon-oom', role: 'status' });
  private readonly text = h('span');
  private readonly holders = h('ul', {
    'aria-label': trans.__('Processes that hold memory of this GPU'),
  });
  private readonly lead = h('div', {}, trans.__('Held by'), this.holders);
  private readonly notes = h('div');
  private readonly rows = new KeyedRows(
    this.holders,
    ({ key }: OomHolder) => key,
    (holder) => {
      const part = this.part(holder);
      return { element: h('li', {}, part), part };
    },
  );

  constructor(private readonly host: NotebookHost) {
    const icon = h('span', { class: 'gpumon-oom-icon', 'aria-hidden': 'true' }, '!');
    this.element.append(h('div', {}, icon, this.text), this.lead, this.notes);
  }

  update(description: OomDescription): void {
    setText(this.text, description.text);
    setAttribute(this.text, 'title', description.title);
    setText(this.notes, description.notes.join(' '));
    setShown(this.lead, description.holders.length > 0);
    this.rows.update(description.holders, ({ part }, { text, title }) => {
      setText(part, text);
      setAttribute(part, 'title', title);
    });
  }

  /** A notebook of this place offers what can be done with it. */
  private part({ kernelId }: OomHolder): HTMLElement {
    if (kernelId === null) {
      return h('span');
    }
    const menu = button({ 'aria-haspopup': 'menu' }, () => this.host.openMenu(kernelId, menu));
    return menu;
  }
}
