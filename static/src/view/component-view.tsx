/** A view that renders Preact components, and the parts that its components use. */

import { createContext, render, type ComponentChild, type RefObject } from 'preact';
import { useContext, useLayoutEffect, useRef, useState } from 'preact/hooks';

import type { Chart } from '../chart/chart';
import { hasDarkBackground, setAttribute, observeWidth, ScreenObserver } from '../lib/dom';
import { readPalette, type Palette } from './palette';

/** A chart, which converts positions on the screen to times. */
type TimeAxis = Pick<Chart, 'timeAt'>;

/** The time under the pointer, which all charts share. `null` means now. */
class Cursor {
  private at: number | null = null;
  private place: { clientX: number; chart: TimeAxis } | null = null;

  constructor(private readonly changed: () => void) {}

  /** The time in milliseconds since the Unix epoch. */
  get at_ms(): number | null {
    return this.at;
  }

  /**
   * Follows the pointer over a chart. Returns a function that must be called when the chart is
   * removed.
   */
  track(host: HTMLElement, chart: TimeAxis): () => void {
    host.addEventListener('pointermove', ({ clientX }) => {
      this.place = { clientX, chart };
      this.updateTime();
    });
    const leave = (): void => {
      this.place = null;
      this.set(null);
    };
    host.addEventListener('pointerleave', leave);
    return () => {
      // If the chart is removed while the pointer is over it, the browser sends no `pointerleave`
      // event. Therefore `leave` is called here.
      if (this.place?.chart === chart) {
        leave();
      }
    };
  }

  /** Recalculates the time after the chart under the pointer has moved. */
  updateTime(): void {
    if (this.place !== null) {
      this.set(this.place.chart.timeAt(this.place.clientX));
    }
  }

  set(at_ms: number | null): void {
    if (this.at !== at_ms) {
      this.at = at_ms;
      this.changed();
    }
  }
}

/** The parts of a view that its components use. */
interface ViewParts {
  /** Requests that the view is rendered in the next animation frame. */
  invalidate: () => void;
  cursor: Cursor;
  screen: ScreenObserver;
  /** Whether everything is rendered for printing, including elements that are not on the screen. */
  isWhole: boolean;
}

const Parts = createContext<ViewParts | null>(null);

/** Returns the parts of the view that contains the component. */
export function useViewParts(): ViewParts {
  const parts = useContext(Parts);
  if (parts === null) {
    throw new Error('gpumon: this component has no view around it');
  }
  return parts;
}

/**
 * A view that renders its components into one element. `mountView` renders all views of a page in
 * the same animation frame, so that they show the same sample.
 *
 * State that components share is in the model or in the view; when it changes, the whole view is
 * rendered. The state of a single component is in its hooks.
 */
export abstract class ComponentView {
  /** The width in pixels; 0 until the element has a layout. */
  protected width_px = 0;
  protected readonly cursor: Cursor;
  /**
   * The parts that components use. A new object makes all components that use it render again, so
   * the object is only replaced when `isWhole` changes.
   */
  private parts: ViewParts;
  private palette: Palette | null = null;
  private readonly screen: ScreenObserver;
  private readonly stopWidth: () => void;

  constructor(
    readonly element: HTMLElement,
    protected readonly invalidate: () => void,
    screenMargin?: string,
  ) {
    this.cursor = new Cursor(invalidate);
    this.screen = new ScreenObserver(screenMargin);
    this.parts = { invalidate, cursor: this.cursor, screen: this.screen, isWhole: false };
    this.stopWidth = observeWidth(element, (width_px) => {
      this.width_px = width_px;
      invalidate();
    });
  }

  render(): void {
    render(
      <Parts.Provider value={this.parts}>{this.renderContent()}</Parts.Provider>,
      this.element,
    );
  }

  themeChanged(): void {
    this.palette = null;
    this.invalidate();
  }

  /** Renders everything once, including elements off the screen. */
  renderOffscreenParts(): void {
    const { parts } = this;
    this.parts = { ...parts, isWhole: true };
    this.render();
    this.parts = parts;
  }

  dispose(): void {
    this.stopWidth();
    this.screen.disconnect();
    render(null, this.element);
    this.element.remove();
  }

  protected abstract renderContent(): ComponentChild;

  /**
   * Returns the colors of the style sheet, light or dark depending on the background of the view.
   */
  protected currentPalette(): Palette {
    if (this.palette === null) {
      setAttribute(
        this.element,
        'data-gpumon-scheme',
        hasDarkBackground(this.element) ? 'dark' : 'light',
      );
      this.palette = readPalette(this.element);
    }
    return this.palette;
  }

  /** Sets attributes of the view's root element; `null` removes an attribute. */
  protected setAttributes(attributes: Record<string, string | null>): void {
    for (const [name, value] of Object.entries(attributes)) {
      setAttribute(this.element, name, value);
    }
  }
}

/** The interval at which elements off the screen are rendered, for programs that read the page. */
const OFFSCREEN_INTERVAL_MS = 5000;

/**
 * The difference between the times at which two consecutive parts off the screen are rendered. It
 * prevents all of these parts from being rendered in the same frame.
 */
const TURN_MS = 617;

/**
 * Returns whether an element is on the screen. If the browser has no `IntersectionObserver`, always
 * returns `true`.
 */
function useOnScreen(element: RefObject<Element | null>): boolean {
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
 * Returns the result of `render`, whose argument is `true` if `element` is on the screen. While the
 * element is off the screen, `render` is called only once per `OFFSCREEN_INTERVAL_MS`. Between
 * these calls, the last result is returned, so that Preact skips the part. The time of the calls
 * depends on `place`, so that different parts are not rendered in the same frame.
 */
export function useThrottledRender(
  element: RefObject<Element | null>,
  now_ms: number,
  render: (onScreen: boolean) => ComponentChild,
  place = 0,
): ComponentChild {
  const onScreen = useOnScreen(element);
  const last = useRef<{ turn: number; content: ComponentChild } | null>(null);
  const turn = Math.floor((now_ms + place * TURN_MS) / OFFSCREEN_INTERVAL_MS);
  if (onScreen || last.current?.turn !== turn) {
    last.current = { turn, content: render(onScreen) };
  }
  return last.current.content;
}
