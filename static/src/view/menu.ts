/** A button that opens something over what is below it. */

import { h, setStyle } from '../lib/dom';

/** The least distance between the opened content and the edges of the view. */
const MARGIN_PX = 12;

/**
 * Creates a menu that closes on Escape and on a click elsewhere. Its content stays within the view,
 * wherever the button is.
 */
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
      placeContent(element, content);
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

/** Aligns the content with the end of its button, or moves it to where it has room. */
function placeContent(element: HTMLElement, content: HTMLElement): void {
  const view = element.closest('.gpumon')?.getBoundingClientRect();
  if (view === undefined) {
    return;
  }
  const { left, right } = element.getBoundingClientRect();
  const last_px = view.right - MARGIN_PX - content.offsetWidth;
  const left_px = Math.max(view.left + MARGIN_PX, Math.min(right - content.offsetWidth, last_px));
  setStyle(content, '--_left', `${left_px - left}px`);
}
