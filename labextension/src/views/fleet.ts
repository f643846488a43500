/** The code of the fleet views, loaded when the fleet or one of its nodes is first shown. */

import { addStyleSheetOnce } from '@gpumon/page/dom';
import viewStyle from '@gpumon/page/view.css?inline';

export { mountFleet, nodePath } from '@gpumon/page/fleet';

addStyleSheetOnce(viewStyle);
