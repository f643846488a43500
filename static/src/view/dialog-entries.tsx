/** The benchmark dialog and the tour, whose code is loaded when they are first opened. */

import { useRef } from 'preact/hooks';

import { StoredValue } from '../lib/stored';
import type { GpuState } from '../model/gpu';
import type { Request } from '../model/request';
import type { Store } from '../model/store';
import { Part, loadPart } from './part';
import type { TourTargets } from './tour';
import type { Freshness } from './value';

/** The interface to run benchmarks on a server. */
export interface Runner {
  request: Request;
  /** Sets whether the server sends the states of runs. */
  setRuns: (on: boolean) => void;
}

export interface RunEntryProps {
  store: Store;
  runner: Runner;
  gpus: readonly GpuState[];
  freshness: Freshness;
  isOpen: boolean;
  onClose: () => void;
}

/**
 * The benchmark dialog. Its code is loaded when it is first opened, and it keeps its state while it
 * is closed.
 */
export function RunEntry(props: RunEntryProps) {
  const wasOpened = useRef(false);
  wasOpened.current ||= props.isOpen;
  return (
    wasOpened.current && (
      <Part load={() => import('./runs/dialog')}>
        {({ RunDialog }) => <RunDialog {...props} />}
      </Part>
    )
  );
}

const TOUR_SEEN = new StoredValue('gpumon-tour');

/** The tour, which is shown once automatically, and again on request. */
export class TourEntry {
  private isWanted: boolean;
  private isOpen = false;

  /**
   * If `isOffered` is set, the tour opens automatically until the user has closed it once. It does
   * not open in a browser that is controlled by a program.
   */
  constructor(
    private readonly root: HTMLElement,
    private readonly targets: () => TourTargets,
    isOffered: boolean,
  ) {
    this.isWanted = isOffered && TOUR_SEEN.get() === null && !navigator.webdriver;
  }

  /** Requests the tour, which is shown when its targets are visible. */
  requestTour(): void {
    this.isWanted = true;
  }

  /**
   * Shows the tour if it has been requested. The view calls this when the targets of the tour are
   * visible.
   */
  showIfRequested(): void {
    if (this.isWanted && !this.isOpen) {
      this.isOpen = true;
      void this.loadAndOpenTour().catch(() => {
        // The view also works without the tour, so the error is ignored.
        this.isOpen = false;
      });
    }
    this.isWanted = false;
  }

  private async loadAndOpenTour(): Promise<void> {
    const { openTour } = await loadPart(import('./tour'));
    openTour(this.root, this.targets(), () => {
      this.isOpen = false;
      TOUR_SEEN.set('seen');
    });
  }
}
