/** The code of the fleet views, loaded when the fleet or one of its nodes is first shown. */

import { adoptStyle } from '@gpumon/page/dom';
import viewStyle from '@gpumon/page/view.css?inline';

export { mountFleet, nodePath } from '@gpumon/page/fleet';

adoptStyle(viewStyle);
