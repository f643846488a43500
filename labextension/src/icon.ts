/** The panel's icon: a chip with a line over time. */

import { LabIcon } from '@jupyterlab/ui-components';

export const gpuIcon = new LabIcon({
  name: 'gpumon:gpu',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24" fill="none">
  <g class="jp-icon3" stroke="#616161" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round">
    <rect x="4" y="6" width="16" height="12" rx="2"/>
    <path d="M8 3v3M12 3v3M16 3v3M8 18v3M12 18v3M16 18v3"/>
    <path d="M7 13h2l1.5-3.5 2.5 5.5 1.5-3.5 0.5 1.5h2"/>
  </g>
</svg>`,
});
