/** The part that is loaded when the panel is first shown. */

import viewStyle from '@gpumon/page/view.css?inline';

import { addStyle } from '../style';

export { mountDashboard, mountMonitor } from '@gpumon/page';

export function addViewStyle(): void {
  addStyle('gpumon-style', viewStyle);
}
