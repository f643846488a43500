/** The code of the views, loaded when the panel or charts are first shown. */

import { addStyleSheetOnce } from '@gpumon/page/dom';
import viewStyle from '@gpumon/page/view.css?inline';

export { mountDashboard, mountMonitor } from '@gpumon/page';

addStyleSheetOnce(viewStyle);
