import { render, type TargetedMouseEvent } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

import { createElement, setStyle, addStyleSheetOnce } from '../lib/dom';
import { trans } from '../lib/translation';
import { Modal } from './modal';
import style from './style/tour.css?inline';

interface TourStep {
  /** The element that the step explains. */
  target: HTMLElement;
  title: string;
  text: string;
}

/** The elements that the steps explain. An element is `null` if it does not exist. */
export interface TourTargets {
  gpus: Element | null;
  holders: Element | null;
  charts: Element | null;
  benchmarks: Element | null;
}

/**
 * The distance between the frame and the element that it surrounds. `GAP_PX` is the distance
 * between the card and the frame.
 */
const FRAME_PX = 4;
const GAP_PX = 10;
/** The minimum distance from the edges of the window. */
const EDGE_PX = 12;

/** Shows a tour of the visible targets. `onEnd` is called when the tour is completed or closed. */
export function openTour(root: HTMLElement, targets: TourTargets, onEnd: () => void): void {
  addStyleSheetOnce(style);
  const host = createElement('div');
  root.append(host);
  const end = (): void => {
    render(null, host);
    host.remove();
    onEnd();
  };
  render(<Tour steps={makeSteps(targets)} onEnd={end} />, host);
}

/**
 * Closes the dialog that contains a button. As a result, the focus returns to its previous element
 * and the tour ends.
 */
function closeDialog({ currentTarget }: TargetedMouseEvent<HTMLButtonElement>): void {
  currentTarget.closest('dialog')?.close();
}

function Tour({ steps, onEnd }: { steps: readonly TourStep[]; onEnd: () => void }) {
  const [place, setPlace] = useState(0);
  const frame = useRef<HTMLDivElement>(null);
  const card = useRef<HTMLDivElement>(null);
  const next = useRef<HTMLButtonElement>(null);
  const step = steps[place];
  const isLast = place === steps.length - 1;
  const arrange = (): void => {
    if (step !== undefined && frame.current !== null && card.current !== null) {
      placeAround(step.target, frame.current, card.current);
    }
  };
  useLayoutEffect(() => next.current?.focus(), []);
  useLayoutEffect(() => {
    step?.target.scrollIntoView({ block: 'nearest' });
    arrange();
    window.addEventListener('resize', arrange);
    return () => window.removeEventListener('resize', arrange);
  }, [place]);
  useEffect(() => {
    if (step === undefined) {
      onEnd();
    }
  }, [step]);
  return (
    <Modal
      class="gpumon-tour"
      label={trans.__('Tour of the panel')}
      testId="gpumon-tour"
      isOpen
      onClose={onEnd}
      onKeyDown={(event) => {
        const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (by !== undefined && steps[place + by] !== undefined) {
          event.preventDefault();
          setPlace(place + by);
        }
      }}
    >
      <div class="gpumon-tour-frame" ref={frame} />
      <div class="gpumon-tour-card" ref={card}>
        <div aria-live="polite">
          <h2>{step?.title}</h2>
          <p>{step?.text}</p>
        </div>
        <div class="gpumon-tour-buttons">
          <span class="gpumon-run-text">{trans.__('%1 of %2', place + 1, steps.length)}</span>
          <button type="button" onClick={closeDialog}>
            {trans.__('Close')}
          </button>
          {place > 0 && (
            <button type="button" onClick={() => setPlace(place - 1)}>
              {trans.__('Back')}
            </button>
          )}
          <button
            type="button"
            class="gpumon-primary"
            ref={next}
            onClick={(event) => (isLast ? closeDialog(event) : setPlace(place + 1))}
          >
            {isLast ? trans.__('Done') : trans.__('Next')}
          </button>
        </div>
      </div>
    </Modal>
  );
}

function makeSteps({ gpus, holders, charts, benchmarks }: TourTargets): TourStep[] {
  const all: [Element | null, string, string][] = [
    [
      gpus,
      trans.__('Your GPUs'),
      trans.__('Utilization, memory by process, power and temperature. Open a GPU for its charts.'),
    ],
    [
      holders,
      trans.__('Processes'),
      trans.__(
        'Notebooks and programs on each GPU. Use the menu to open, interrupt or shut down a notebook.',
      ),
    ],
    [
      charts,
      trans.__('Charts'),
      trans.__('All readings of the last minutes. The cells that ran are shown behind the lines.'),
    ],
    [
      benchmarks,
      trans.__('Benchmarks'),
      trans.__('Measure memory, matrix products and PCIe, and compare results with the peak.'),
    ],
  ];
  return all.flatMap(([target, title, text]) =>
    target instanceof HTMLElement && !target.hidden ? [{ target, title, text }] : [],
  );
}

/** Moves the frame around the target, and the card next to it where there is room. */
function placeAround(element: HTMLElement, frame: HTMLElement, card: HTMLElement): void {
  const { innerWidth, innerHeight } = window;
  const target = element.getBoundingClientRect();
  const { width, height } = card.getBoundingClientRect();
  const top = Math.max(target.top, EDGE_PX);
  const bottom = Math.min(target.bottom, innerHeight - EDGE_PX);
  move(frame, target.left - FRAME_PX, top - FRAME_PX);
  setStyle(frame, 'width', `${target.width + 2 * FRAME_PX}px`);
  setStyle(frame, 'height', `${Math.max(0, bottom - top) + 2 * FRAME_PX}px`);
  const gap = FRAME_PX + GAP_PX;
  const within = (value: number, size: number, room: number): number =>
    Math.max(EDGE_PX, Math.min(value, room - size - EDGE_PX));
  const left = within(target.left, width, innerWidth);
  const places = [
    [target.right + gap, within(top, height, innerHeight)],
    [left, bottom + gap],
    [left, top - gap - height],
  ] as const;
  const fits = ([x, y]: readonly [number, number]): boolean =>
    x === within(x, width, innerWidth) && y === within(y, height, innerHeight);
  move(card, ...(places.find(fits) ?? [left, innerHeight - height - EDGE_PX]));
}

function move(element: HTMLElement, left: number, top: number): void {
  setStyle(element, 'left', `${left}px`);
  setStyle(element, 'top', `${top}px`);
}
