import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

import { Chart } from '../chart/chart';
import type { ChartContent } from '../chart/content';
import { useViewParts } from './component-view';

interface ChartCanvasProps {
  /**
   * The content of the chart; `null` keeps the drawn content, for example while the chart is off
   * the screen.
   */
  content: ChartContent | null;
  class?: string;
  /** Whether the view's cursor follows the pointer over this chart. */
  isTracked?: boolean;
  /**
   * Called once with the element and its chart, for parents that copy the chart or add gestures.
   */
  onMount?: (host: HTMLElement, chart: Chart) => void;
  /** Elements that are placed over the chart. */
  children?: ComponentChildren;
}

/**
 * A chart on a canvas. The view's cursor follows the pointer over the chart. The chart is drawn
 * after all elements of the view have been updated, because setting a font makes the browser
 * compute the styles of the page.
 */
export function ChartCanvas({
  content,
  class: className = 'gpumon-chart',
  isTracked = true,
  onMount,
  children,
}: ChartCanvasProps) {
  const { cursor, isWhole } = useViewParts();
  const host = useRef<HTMLDivElement>(null);
  const own = useRef<Chart>(null);
  useLayoutEffect(() => {
    if (host.current === null) {
      return undefined;
    }
    const made = new Chart(host.current);
    own.current = made;
    const stop = isTracked ? cursor.track(host.current, made) : undefined;
    onMount?.(host.current, made);
    return () => {
      stop?.();
      made.dispose();
    };
  }, []);
  useLayoutEffect(() => {
    if (isWhole) {
      own.current?.measureSize();
    }
    if (content !== null) {
      own.current?.draw(content);
    }
  });
  return (
    <div class={className} aria-hidden="true" ref={host}>
      {children}
    </div>
  );
}
