/** Zooming a chart with the pointer: drag, wheel, pinch, and a double click that undoes it. A drag with Shift moves it. */

import { h, setAttribute, setShown, setStyle } from '../../lib/dom';

/** A shorter way is a click. */
const LEAST_PX = 4;
/** The wheel's way that zooms by a factor of two; a notch is 100 to 120. */
const DOUBLE_PX = 240;
/** What browsers count as a line where a wheel counts in lines. */
const LINE_PX = 40;

export interface GestureListener {
  timeAt: (clientX: number) => number | null;
  valueAt: (clientY: number) => number | null;
  /** The milliseconds in a pixel of the page. */
  pixelTime: () => number | null;
  /** Whether this is on the axis of values. */
  isOnAxis: (clientX: number) => boolean;
  /** What lies between two moments was drawn over. */
  onZoom: (a_ms: number, b_ms: number) => void;
  /** So many times as much time is to be seen, with a moment where it is. */
  onZoomBy: (factor: number, at_ms: number) => void;
  /** Somebody takes hold of what is shown. Returns what moves it by some time, counted from there. */
  onGrab: () => (by_ms: number) => void;
  /** What lies between two values was drawn over. */
  onAxis: (a: number, b: number) => void;
  /** All is to be as it was before. */
  onReset: () => void;
}

interface Drag {
  x: number;
  y: number;
  onAxis: boolean;
  /** Moves what is shown to where the pointer is; `null` where something is drawn over. */
  move: ((x: number) => void) | null;
}

/** Lets `host` be zoomed. A wheel alone scrolls the page, as everywhere. */
export function addGestures(host: HTMLElement, listener: GestureListener): void {
  addDrag(host, listener);
  addPinch(host, listener);
  host.addEventListener('dblclick', listener.onReset);
  host.addEventListener(
    'wheel',
    (event) => {
      const at_ms = listener.timeAt(event.clientX);
      // Browsers tell a pinch on a touchpad as a wheel with Ctrl.
      if ((event.ctrlKey || event.metaKey) && at_ms !== null) {
        event.preventDefault();
        const way_px = event.deltaY * (event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PX : 1);
        listener.onZoomBy(2 ** (way_px / DOUBLE_PX), at_ms);
      }
    },
    { passive: false },
  );
}

function addDrag(host: HTMLElement, listener: GestureListener): void {
  const { timeAt, valueAt, isOnAxis, onZoom, onAxis } = listener;
  const shade = h('span', { class: 'gpumon-brush', 'aria-hidden': 'true' });
  shade.hidden = true;
  host.append(shade);
  let drag: Drag | null = null;

  const stop = (): void => {
    drag = null;
    setShown(shade, false);
    setAttribute(host, 'data-grabbed', null);
  };
  const length = ({ x, y, onAxis: vertical }: Drag, event: PointerEvent): number =>
    Math.abs(vertical ? event.clientY - y : event.clientX - x);
  host.addEventListener('pointerdown', (event) => {
    if (event.button === 0 && event.pointerType !== 'touch') {
      const move = event.shiftKey ? grabbed(event.clientX, listener) : null;
      drag = {
        x: event.clientX,
        y: event.clientY,
        onAxis: move === null && isOnAxis(event.clientX),
        move,
      };
      setAttribute(host, 'data-grabbed', move === null ? null : '');
      host.setPointerCapture(event.pointerId);
    }
  });
  host.addEventListener('pointermove', (event) => {
    setAttribute(host, 'data-axis', (drag?.onAxis ?? isOnAxis(event.clientX)) ? '' : null);
    if (drag?.move != null) {
      drag.move(event.clientX);
    } else if (drag !== null) {
      const { left, top } = host.getBoundingClientRect();
      const px = `${length(drag, event)}px`;
      const vertical = drag.onAxis;
      setStyle(shade, 'left', vertical ? '0' : `${Math.min(drag.x, event.clientX) - left}px`);
      setStyle(shade, 'width', vertical ? '100%' : px);
      setStyle(shade, 'top', vertical ? `${Math.min(drag.y, event.clientY) - top}px` : '');
      setStyle(shade, 'bottom', vertical ? 'auto' : '');
      setStyle(shade, 'height', vertical ? px : '');
      setShown(shade, length(drag, event) >= LEAST_PX);
    }
  });
  host.addEventListener('pointerup', (event) => {
    if (drag?.move === null && length(drag, event) >= LEAST_PX) {
      const vertical = drag.onAxis;
      const [a, b] = vertical
        ? [valueAt(drag.y), valueAt(event.clientY)]
        : [timeAt(drag.x), timeAt(event.clientX)];
      if (a !== null && b !== null) {
        (vertical ? onAxis : onZoom)(a, b);
      }
    }
    stop();
  });
  host.addEventListener('pointercancel', stop);
}

/** What moves the time that was under the pointer along with it; `null` where the chart is not drawn. */
function grabbed(x: number, { pixelTime, onGrab }: GestureListener): Drag['move'] {
  const pixel_ms = pixelTime();
  if (pixel_ms === null) {
    return null;
  }
  const moveBy = onGrab();
  return (to) => moveBy((x - to) * pixel_ms);
}

/** Two fingers: what is between them stays between them. */
function addPinch(host: HTMLElement, { timeAt, onZoomBy }: GestureListener): void {
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
    const at_ms = timeAt((a + b) / 2);
    if (fingers.size === 2 && at_ms !== null) {
      onZoomBy(before / apart(), at_ms);
    }
  });
  for (const end of ['pointerup', 'pointercancel', 'pointerleave'] as const) {
    host.addEventListener(end, ({ pointerId }) => fingers.delete(pointerId));
  }
}
