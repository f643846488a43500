/** What keys and pointer do on charts, for whoever asks. */

import { h } from '../../lib/dom';
import { trans } from '../../lib/translation';

/** The list, made when a view is: the language is known by then. */
export function keyHelp(): HTMLElement {
  const rows = [
    [trans.__('Drag over a chart'), trans.__('Zoom to a span of time; the charts are paused')],
    [
      trans.__('Ctrl+wheel, pinch'),
      trans.__('Zoom in or out; all the way out is live again, and goes back further'),
    ],
    [trans.__('Drag over a value axis'), trans.__('Zoom to a range of values')],
    [trans.__('Double-click'), trans.__('Reset the zoom')],
    [trans.__('Click in a legend'), trans.__('Only this line; again for all')],
    [trans.__('Ctrl+click or Shift+click in a legend'), trans.__('Hide or show this line')],
    [
      trans.__('Drag the title of a chart'),
      trans.__('Arrange charts; the menu of a chart does so by keys'),
    ],
    ['+ −', trans.__('Zoom in or out; while live, a shorter or longer time range')],
    [trans.__('← →, Shift+drag'), trans.__('Move in time')],
    [trans.__('Space'), trans.__('Pause or resume')],
    [trans.__('y'), trans.__('Fit value axes to the data, or show them whole')],
    [trans.__('m'), trans.__('Mark the moment pointed at, or now, on the charts of everybody')],
    [trans.__('0, Esc'), trans.__('Reset the zoom')],
    ['?', trans.__('This list')],
  ] as const;
  return h(
    'dl',
    { class: 'gpumon-shortcuts', tabindex: '0' },
    ...rows.flatMap(([key, text]) => [h('dt', {}, key), h('dd', {}, text)]),
  );
}
