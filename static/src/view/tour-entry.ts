/** Shows the tour: once by itself, and whenever it is asked for. */

import { Stored } from '../lib/stored';
import { part } from './part';
import type { TourTargets } from './tour';

const SEEN = new Stored('gpumon-tour');

export class TourEntry {
  private wanted: boolean;
  private isOpen = false;

  /** `offered` says to show it to whoever has not closed it yet; a program that steers the browser looks for other things. */
  constructor(
    private readonly root: HTMLElement,
    private readonly targets: () => TourTargets,
    offered: boolean,
  ) {
    this.wanted = offered && SEEN.get() === null && !navigator.webdriver;
  }

  /** Somebody asks for it, perhaps before there is anything to point at. */
  request(): void {
    this.wanted = true;
  }

  /** There is something to point at. */
  ready(): void {
    if (this.wanted && !this.isOpen) {
      void this.show();
    }
    this.wanted = false;
  }

  private async show(): Promise<void> {
    this.isOpen = true;
    try {
      const { Tour, tourSteps } = await part(import('./tour'));
      const tour = new Tour(tourSteps(this.targets()), () => {
        this.isOpen = false;
        SEEN.set('seen');
      });
      tour.open(this.root);
    } catch {
      // Nobody misses it.
      this.isOpen = false;
    }
  }
}
