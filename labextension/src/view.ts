/** The part that is loaded when the panel is first shown. */

import viewStyle from '@gpumon/page/view.css?inline';

export { Feed, mountMonitor } from '@gpumon/page';
export { LabNotebooks } from './notebooks';

const STYLE_ID = 'gpumon-style';

/** Puts the view's style sheet into the document, once. */
export function addStyle(): void {
  if (document.getElementById(STYLE_ID) === null) {
    const style = document.createElement('style');
    style.id = STYLE_ID;
    style.textContent = viewStyle;
    document.head.append(style);
  }
}
