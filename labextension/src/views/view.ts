/** The part that is loaded when the panel is first shown. */

import { adoptStyle } from '@gpumon/page/style';
import viewStyle from '@gpumon/page/view.css?inline';

export { mountDashboard, mountMonitor } from '@gpumon/page';

adoptStyle(viewStyle);
