/** What can be done with one chart. */

import { button, h, setText } from '../../lib/dom';
import { trans } from '../../lib/translation';
import { menu } from '../menu';

export interface PlotAction {
  label: string;
  /** Returns what there is to say about it; the menu closes where there is nothing. */
  run: () => Promise<string> | null;
}

/** Its contents are made when it is first opened, since there are many charts. */
export function plotMenu(actions: () => readonly PlotAction[]): HTMLDetailsElement {
  const content = h('div', { class: 'gpumon-plot-menu' });
  const element = menu(
    h('span', { role: 'img', 'aria-label': trans.__('Chart menu') }, '⋯'),
    content,
  );
  const status = h('p', { role: 'status', class: 'gpumon-missing' });
  const run = async (action: PlotAction): Promise<void> => {
    try {
      const said = await action.run();
      setText(status, said ?? '');
      if (said === null) {
        element.open = false;
        // The chart may stand elsewhere after the next frame, which takes the focus away.
        requestAnimationFrame(() => element.querySelector('summary')?.focus());
      }
    } catch (error) {
      setText(status, trans.__('Not copied: %1', String(error)));
    }
  };
  element.addEventListener('toggle', () => {
    setText(status, '');
    content.replaceChildren(
      ...(element.open
        ? actions().map((action) => button({}, () => void run(action), action.label))
        : []),
      status,
    );
  });
  return element;
}
