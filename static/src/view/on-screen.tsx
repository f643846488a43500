import type { ComponentChild, RefObject } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

import { useViewParts } from './component-view';

/** The interval at which elements off the screen are rendered, for programs that read the page. */
const OFFSCREEN_INTERVAL_MS = 5000;

/** The time by which the turns of consecutive parts differ. */
const TURN_MS = 617;

/**
 * Returns whether an element is on the screen. If the browser has no `IntersectionObserver`, always
 * returns `true`.
 */
export function useOnScreen(element: RefObject<Element | null>): boolean {
  const { screen, isWhole } = useViewParts();
  const [onScreen, setOnScreen] = useState(typeof IntersectionObserver === 'undefined');
  useLayoutEffect(() => {
    const observed = element.current;
    if (observed === null) {
      return undefined;
    }
    screen.observe(observed, setOnScreen);
    return () => screen.unobserve(observed);
  }, [screen, element]);
  return onScreen || isWhole;
}

/**
 * Returns the result of `render`. While a part is not on the screen, the last result is returned
 * until the part's next turn, so that Preact skips the part. Each `place` has its own turns, so
 * that not all parts are rendered in the same frame.
 */
export function useThrottledRender(
  onScreen: boolean,
  now_ms: number,
  render: () => ComponentChild,
  place = 0,
): ComponentChild {
  const last = useRef<{ turn: number; content: ComponentChild } | null>(null);
  const turn = Math.floor((now_ms + place * TURN_MS) / OFFSCREEN_INTERVAL_MS);
  if (onScreen || last.current?.turn !== turn) {
    last.current = { turn, content: render() };
  }
  return last.current.content;
}
