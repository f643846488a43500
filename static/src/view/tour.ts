/** A short tour of the view: one thing after the other is pointed at, and told what it is for. */

import { button, h, setShown, setStyle, setText } from '../lib/dom';
import { adoptStyle } from '../lib/style';
import { trans } from '../lib/translation';
import { closeByPressBeside } from './modal';
import style from './style/tour.css?inline';

export interface TourStep {
  /** What is pointed at. */
  target: HTMLElement;
  title: string;
  text: string;
}

/** What a step can point at, where it is there. */
export interface TourTargets {
  gpus: Element | null;
  holders: Element | null;
  charts: Element | null;
  benchmarks: Element | null;
}

/** The steps to what can be seen. */
export function tourSteps({ gpus, holders, charts, benchmarks }: TourTargets): TourStep[] {
  const all: [Element | null, string, string][] = [
    [
      gpus,
      trans.__('Your GPUs'),
      trans.__(
        'Utilization, memory by process, power and temperature. Open a GPU to see its charts and details.',
      ),
    ],
    [
      holders,
      trans.__('Who holds memory'),
      trans.__(
        'Notebooks and programs on each GPU. The menu of a notebook opens, interrupts or shuts it down.',
      ),
    ],
    [
      charts,
      trans.__('Charts'),
      trans.__('Every reading over the last minutes, with the cells that ran behind the lines.'),
    ],
    [
      benchmarks,
      trans.__('Benchmarks'),
      trans.__(
        'Measure memory, matrix products and PCIe, and compare the results with the theoretical peak.',
      ),
    ],
  ];
  return all.flatMap(([target, title, text]) =>
    target instanceof HTMLElement && !target.hidden ? [{ target, title, text }] : [],
  );
}

/** Between what is pointed at and its frame, and from there to the text. */
const FRAME_PX = 4;
const GAP_PX = 10;
/** To the edges of the window. */
const EDGE_PX = 12;

export class Tour {
  private readonly frame = h('div', { class: 'gpumon-tour-frame' });
  private readonly title = h('h2');
  private readonly text = h('p');
  private readonly place = h('span', { class: 'gpumon-run-text' });
  private readonly back = button({}, () => this.show(this.at - 1), trans.__('Back'));
  private readonly next = button({ class: 'gpumon-primary' }, () => this.show(this.at + 1));
  private readonly card = h(
    'div',
    { class: 'gpumon-tour-card' },
    h('div', { 'aria-live': 'polite' }, this.title, this.text),
    h(
      'div',
      { class: 'gpumon-tour-buttons' },
      this.place,
      button({}, () => this.element.close(), trans.__('Close')),
      this.back,
      this.next,
    ),
  );
  readonly element = h(
    'dialog',
    {
      class: 'gpumon-tour',
      'aria-label': trans.__('Tour of the panel'),
      'data-testid': 'gpumon-tour',
    },
    this.frame,
    this.card,
  );
  private at = 0;
  private readonly onResize = (): void => this.arrange();

  /** `onEnd` is called when it is closed, at its end or before. */
  constructor(
    private readonly steps: readonly TourStep[],
    onEnd: () => void,
  ) {
    this.element.addEventListener('keydown', (event) => this.onKey(event));
    closeByPressBeside(this.element);
    this.element.addEventListener('close', () => {
      window.removeEventListener('resize', this.onResize);
      this.element.remove();
      onEnd();
    });
  }

  /** Opens it over the view; without steps, it ends at once. */
  open(root: HTMLElement): void {
    adoptStyle(style);
    root.append(this.element);
    this.element.showModal();
    window.addEventListener('resize', this.onResize);
    this.show(0);
  }

  /** Behind the last step it ends. */
  private show(at: number): void {
    const step = this.steps[at];
    if (step === undefined) {
      this.element.close();
      return;
    }
    this.at = at;
    const isLast = at === this.steps.length - 1;
    setText(this.title, step.title);
    setText(this.text, step.text);
    setText(this.place, trans.__('%1 of %2', at + 1, this.steps.length));
    setText(this.next, isLast ? trans.__('Done') : trans.__('Next'));
    if (at === 0) {
      this.next.focus();
    }
    setShown(this.back, at > 0);
    step.target.scrollIntoView({ block: 'nearest' });
    this.arrange();
  }

  private onKey(event: KeyboardEvent): void {
    // Keys mean nothing to what is below.
    event.stopPropagation();
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by !== undefined && this.steps[this.at + by] !== undefined) {
      event.preventDefault();
      this.show(this.at + by);
    }
  }

  /** Frames what is pointed at, with the text beside it, below it or above it, wherever there is room. */
  private arrange(): void {
    const target = this.steps[this.at]?.target.getBoundingClientRect();
    if (target === undefined) {
      return;
    }
    const { innerWidth, innerHeight } = window;
    const { width, height } = this.card.getBoundingClientRect();
    const top = Math.max(target.top, EDGE_PX);
    const bottom = Math.min(target.bottom, innerHeight - EDGE_PX);
    this.put(this.frame, target.left - FRAME_PX, top - FRAME_PX);
    setStyle(this.frame, 'width', `${target.width + 2 * FRAME_PX}px`);
    setStyle(this.frame, 'height', `${Math.max(0, bottom - top) + 2 * FRAME_PX}px`);
    const fits = (left: number, above: number): boolean =>
      left >= EDGE_PX &&
      left + width <= innerWidth - EDGE_PX &&
      above >= EDGE_PX &&
      above + height <= innerHeight - EDGE_PX;
    const gap = FRAME_PX + GAP_PX;
    const within = (value: number, size: number, space: number): number =>
      Math.max(EDGE_PX, Math.min(value, space - size - EDGE_PX));
    const [left, above] = [
      within(target.left, width, innerWidth),
      within(top, height, innerHeight),
    ];
    const places: [number, number][] = [
      [target.right + gap, above],
      [left, bottom + gap],
      [left, top - gap - height],
    ];
    this.put(
      this.card,
      ...(places.find(([x, y]) => fits(x, y)) ?? [left, innerHeight - height - EDGE_PX]),
    );
  }

  private put(element: HTMLElement, left: number, top: number): void {
    setStyle(element, 'left', `${left}px`);
    setStyle(element, 'top', `${top}px`);
  }
}
