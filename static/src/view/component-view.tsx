import { createContext, render, type ComponentChild } from 'preact';
import { useContext } from 'preact/hooks';

import { isOnDark } from '../lib/color';
import { setAttribute } from '../lib/dom';
import { observeWidth, ScreenObserver } from '../lib/screen';
import { Cursor } from './cursor';
import type { View } from './mount';
import { readPalette, type Palette } from './palette';

/** The parts of a view that its components use. */
export interface ViewParts {
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
export abstract class ComponentView implements View {
  /** The width in pixels; 0 until the element has a layout. */
  protected width_px = 0;
  protected readonly cursor: Cursor;
  /**
   * The parts that components use. The object is only replaced when `isWhole` changes, because a
   * new object renders all components that use it.
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
      // A hidden tab has a width of 0, but the view keeps its layout for the last visible width.
      if (width_px > 0) {
        this.width_px = width_px;
        invalidate();
      }
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

  revealAll(): void {
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
      setAttribute(this.element, 'data-gpumon-scheme', isOnDark(this.element) ? 'dark' : 'light');
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
