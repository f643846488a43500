/** Shows the tour: once by itself, and whenever it is asked for. */

import { Stored } from '../lib/stored';
import type { TourTargets } from './tour';

const SEEN = new Stored('gpumon-tour');

export class TourEntry {
  private offered = false;
  private isOpen = false;

  constructor(
    private readonly root: HTMLElement,
    private readonly targets: () => TourTargets,
  ) {}

  /** Shows it to whoever has not closed it yet; a program that steers the browser looks for other things. */
  offer(): void {
    if (!this.offered) {
      this.offered = true;
      if (SEEN.get() === null && !navigator.webdriver) {
        void this.show();
      }
    }
  }

  async show(): Promise<void> {
    if (this.isOpen) {
      return;
    }
    this.isOpen = true;
    try {
      const { Tour, tourSteps } = await import('./tour');
      const tour = new Tour(tourSteps(this.targets()), () => {
        this.isOpen = false;
        SEEN.set('seen');
      });
      tour.open(this.root);
    } catch (error) {
      this.isOpen = false;
      console.error('gpumon: the tour cannot be shown', error);
    }
  }
}
