/** A button that opens something over what is below it. */

import { h } from '../lib/dom';

/** Escape closes it, and so does a click elsewhere. */
export function menu(label: string | Node, content: HTMLElement): HTMLDetailsElement {
  const summary = h('summary', { class: 'gpumon-chip' }, label);
  const element = h('details', { class: 'gpumon-menu' }, summary, content);
  const closeOutside = ({ target }: Event): void => {
    if (!(target instanceof Node && element.contains(target))) {
      element.open = false;
    }
  };
  element.addEventListener('toggle', () => {
    if (element.open) {
      document.addEventListener('pointerdown', closeOutside);
    } else {
      document.removeEventListener('pointerdown', closeOutside);
    }
  });
  element.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && element.open) {
      event.stopPropagation();
      element.open = false;
      summary.focus();
    }
  });
  return element;
}
