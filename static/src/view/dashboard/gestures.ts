/**
 * Gestures on a chart: zooming by drag, wheel and pinch, a double click that resets the zoom, and
 * moving by a drag with Shift.
 */

import type { Chart } from '../../chart/chart';
import { createElement, setAttribute, setShown, setStyle } from '../../lib/dom';

/** The minimum distance of a drag in pixels. A shorter one is a click. */
const MIN_DRAG_PX = 4;
/**
 * The distance that the wheel must scroll to zoom by a factor of two. One notch is 100 to 120
 * pixels.
 */
const WHEEL_DOUBLING_PX = 240;
/** The assumed height of a line in pixels, for wheels that scroll by lines. */
const LINE_PX = 40;

export interface GestureListener {
  /** Called after a drag from one time to another. */
  onZoom: (a_ms: number, b_ms: number) => void;
  /** Called to show `factor` times as much time, with `at_ms` at the same position. */
  onZoomBy: (factor: number, at_ms: number) => void;
  /**
   * Called when the user grabs the chart. Returns a function that moves the chart by a duration,
   * measured from the position of the chart at that moment.
   */
  onGrab: () => (by_ms: number) => void;
  /** Called after a drag on the value axis from one value to another. */
  onAxis: (a: number, b: number) => void;
  onReset: () => void;
}

interface Drag {
  x: number;
  y: number;
  onAxis: boolean;
  /** Moves the grabbed chart to the pointer position `x`; `null` if the drag selects a range. */
  move: ((x: number) => void) | null;
}

/** Adds the gestures to `host`. The wheel without a modifier key still scrolls the page. */
export function addGestures(host: HTMLElement, chart: Chart, listener: GestureListener): void {
  addDrag(host, chart, listener);
  addPinch(host, chart, listener);
  host.addEventListener('dblclick', listener.onReset);
  host.addEventListener(
    'wheel',
    (event) => {
      const at_ms = chart.timeAt(event.clientX);
      // Browsers report a pinch on a touchpad as a wheel event with Ctrl.
      if ((event.ctrlKey || event.metaKey) && at_ms !== null) {
        event.preventDefault();
        const way_px = event.deltaY * (event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PX : 1);
        listener.onZoomBy(2 ** (way_px / WHEEL_DOUBLING_PX), at_ms);
      }
    },
    { passive: false },
  );
}

/**
 * Adds dragging. The brush, which marks the selected range, is not rendered by Preact. Therefore it
 * also follows the pointer between two frames.
 */
function addDrag(
  host: HTMLElement,
  chart: Chart,
  { onZoom, onAxis, onGrab }: GestureListener,
): void {
  const brush = createElement('span', { class: 'gpumon-brush', 'aria-hidden': 'true' });
  brush.hidden = true;
  host.append(brush);
  let drag: Drag | null = null;

  const stop = (): void => {
    drag = null;
    setShown(brush, false);
    setAttribute(host, 'data-grabbed', null);
  };
  const length = ({ x, y, onAxis: vertical }: Drag, event: PointerEvent): number =>
    Math.abs(vertical ? event.clientY - y : event.clientX - x);
  host.addEventListener('pointerdown', (event) => {
    if (event.button === 0 && event.pointerType !== 'touch') {
      const { clientX: x, clientY: y, shiftKey } = event;
      const { pixel_ms } = chart;
      const moveBy = shiftKey && pixel_ms !== null ? onGrab() : null;
      const move = moveBy && ((to: number): void => moveBy((x - to) * (pixel_ms ?? 0)));
      drag = { x, y, onAxis: move === null && chart.isOnAxis(x), move };
      setAttribute(host, 'data-grabbed', move === null ? null : '');
      host.setPointerCapture(event.pointerId);
    }
  });
  host.addEventListener('pointermove', (event) => {
    const isVertical = drag?.onAxis ?? chart.isOnAxis(event.clientX);
    setAttribute(host, 'data-axis', isVertical ? '' : null);
    if (drag?.move != null) {
      drag.move(event.clientX);
    } else if (drag !== null) {
      const { left, top } = host.getBoundingClientRect();
      const px = `${length(drag, event)}px`;
      setStyle(brush, 'left', isVertical ? '0' : `${Math.min(drag.x, event.clientX) - left}px`);
      setStyle(brush, 'width', isVertical ? '100%' : px);
      setStyle(brush, 'top', isVertical ? `${Math.min(drag.y, event.clientY) - top}px` : '');
      setStyle(brush, 'bottom', isVertical ? 'auto' : '');
      setStyle(brush, 'height', isVertical ? px : '');
      setShown(brush, length(drag, event) >= MIN_DRAG_PX);
    }
  });
  host.addEventListener('pointerup', (event) => {
    if (drag?.move === null && length(drag, event) >= MIN_DRAG_PX) {
      const [a, b] = drag.onAxis
        ? [chart.valueAt(drag.y)?.value, chart.valueAt(event.clientY)?.value]
        : [chart.timeAt(drag.x), chart.timeAt(event.clientX)];
      if (a != null && b != null) {
        (drag.onAxis ? onAxis : onZoom)(a, b);
      }
    }
    stop();
  });
  host.addEventListener('pointercancel', stop);
}

/** Adds pinching. While the fingers move, the same time span stays between them. */
function addPinch(host: HTMLElement, chart: Chart, { onZoomBy }: GestureListener): void {
  const fingers = new Map<number, number>();
  const apart = (): number => {
    const [a = 0, b = 0] = fingers.values();
    return Math.max(1, Math.abs(a - b));
  };
  host.addEventListener('pointerdown', (event) => {
    if (event.pointerType === 'touch') {
      fingers.set(event.pointerId, event.clientX);
    }
  });
  host.addEventListener('pointermove', (event) => {
    if (!fingers.has(event.pointerId)) {
      return;
    }
    const before = apart();
    fingers.set(event.pointerId, event.clientX);
    const [a = 0, b = 0] = fingers.values();
    const at_ms = chart.timeAt((a + b) / 2);
    if (fingers.size === 2 && at_ms !== null) {
      onZoomBy(before / apart(), at_ms);
    }
  });
  for (const end of ['pointerup', 'pointercancel', 'pointerleave'] as const) {
    host.addEventListener(end, ({ pointerId }) => fingers.delete(pointerId));
  }
}
