/** Drawing over a chart to zoom into that part of the past. */

import { h, setShown, setStyle } from '../../lib/dom';

const LEAST_PX = 4;

export interface BrushListener {
  timeAt: (clientX: number) => number | null;
  /** Something between two moments was drawn over. */
  onZoom: (a_ms: number, b_ms: number) => void;
  /** All is to be as it was before. */
  onReset: () => void;
}

/** Lets `host` be drawn over with the pointer; twice pressed, it is reset. */
export function addBrush(host: HTMLElement, { timeAt, onZoom, onReset }: BrushListener): void {
  const shade = h('span', { class: 'gpumon-brush', 'aria-hidden': 'true' });
  shade.hidden = true;
  host.append(shade);
  let from: number | null = null;

  const stop = (): void => {
    from = null;
    setShown(shade, false);
  };
  host.addEventListener('pointerdown', (event) => {
    if (event.button === 0 && event.pointerType !== 'touch') {
      from = event.clientX;
      host.setPointerCapture(event.pointerId);
    }
  });
  host.addEventListener('pointermove', (event) => {
    if (from !== null) {
      const left = host.getBoundingClientRect().left;
      setShown(shade, Math.abs(event.clientX - from) >= LEAST_PX);
      setStyle(shade, 'left', `${String(Math.min(from, event.clientX) - left)}px`);
      setStyle(shade, 'width', `${Math.abs(event.clientX - from)}px`);
    }
  });
  host.addEventListener('pointerup', (event) => {
    const [a, b] = from === null ? [null, null] : [timeAt(from), timeAt(event.clientX)];
    if (a !== null && b !== null && !shade.hidden) {
      onZoom(a, b);
    }
    stop();
  });
  host.addEventListener('pointercancel', stop);
  host.addEventListener('dblclick', onReset);
}
