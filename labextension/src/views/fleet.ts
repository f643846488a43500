/** Loaded when the fleet or a node of it is first shown. */

import { adoptStyle } from '@gpumon/page/style';
import viewStyle from '@gpumon/page/view.css?inline';

export { mountFleet, nodePath } from '@gpumon/page/fleet';

adoptStyle(viewStyle);
