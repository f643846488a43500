import type { ComponentChild, RefObject } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

import { useViewParts } from './component-view';

/** The interval at which elements off the screen are rendered, for programs that read the page. */
const OFFSCREEN_INTERVAL_MS = 5000;

/** The delay between the turns of two parts. */
const TURN_MS = 617;

/** Returns whether an element is on the screen. Without an `IntersectionObserver`, it always is. */
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
 * Returns the result of `render`. For a part off the screen, it is the last result until the part's
 * next turn, so that Preact skips the part. Parts with different places have different turns, so
 * that they are not rendered all at once.
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
