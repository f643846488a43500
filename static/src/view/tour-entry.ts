import { Stored } from '../lib/stored';
import { loadPart } from './part';
import type { TourTargets } from './tour';

const SEEN = new Stored('gpumon-tour');

/** Shows the tour: once without a request, and on request. */
export class TourEntry {
  private isWanted: boolean;
  private isOpen = false;

  /**
   * With `isOffered`, the tour opens by itself until somebody has closed it once. It does not in
   * a browser that a program controls, where it would be in the way.
   */
  constructor(
    private readonly root: HTMLElement,
    private readonly targets: () => TourTargets,
    isOffered: boolean,
  ) {
    this.isWanted = isOffered && SEEN.get() === null && !navigator.webdriver;
  }

  /** Shows the tour as soon as there is something to point at. */
  request(): void {
    this.isWanted = true;
  }

  /** Called when there is something to point at. */
  ready(): void {
    if (this.isWanted && !this.isOpen) {
      this.isOpen = true;
      void this.show().catch(() => {
        // The view works without the tour.
        this.isOpen = false;
      });
    }
    this.isWanted = false;
  }

  private async show(): Promise<void> {
    const { openTour } = await loadPart(import('./tour'));
    openTour(this.root, this.targets(), () => {
      this.isOpen = false;
      SEEN.set('seen');
    });
  }
}
