/** Dragging charts to another place. */

import { setAttribute } from '../../lib/dom';

/** What is dragged, so that a chart takes nothing else: a file, a cell. */
const TYPE = 'application/x-gpumon-chart';

export interface ReorderListener {
  /** The chart that this element is of. */
  id: () => string;
  /** A chart was dropped here: before this one, or after it. */
  onDrop: (chart: string, after: boolean) => void;
}

/** Lets `element` be dragged by its `handle`, and others be dropped on it. */
export function addReorder(
  element: HTMLElement,
  handle: HTMLElement,
  { id, onDrop }: ReorderListener,
): void {
  handle.draggable = true;
  const side = (event: DragEvent): 'before' | 'after' => {
    const { left, width } = element.getBoundingClientRect();
    return event.clientX < left + width / 2 ? 'before' : 'after';
  };
  const mark = (place: string | null): void => setAttribute(element, 'data-drop', place);
  handle.addEventListener('dragstart', ({ dataTransfer }) => {
    dataTransfer?.setData(TYPE, id());
    dataTransfer?.setDragImage(element, 20, 20);
  });
  element.addEventListener('dragover', (event) => {
    if (event.dataTransfer?.types.includes(TYPE) === true) {
      event.preventDefault();
      mark(side(event));
    }
  });
  element.addEventListener('dragleave', ({ relatedTarget }) => {
    if (!(relatedTarget instanceof Node && element.contains(relatedTarget))) {
      mark(null);
    }
  });
  element.addEventListener('drop', (event) => {
    mark(null);
    const chart = event.dataTransfer?.getData(TYPE) ?? '';
    if (chart !== '') {
      event.preventDefault();
      onDrop(chart, side(event) === 'after');
    }
  });
}
