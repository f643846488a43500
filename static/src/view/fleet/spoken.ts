import { count } from '../../lib/format';
import { trans } from '../../lib/translation';
import type { FleetStatus } from './head';

/** While somebody types, the result is announced only once they pause. */
const PAUSE_MS = 600;

/** What screen readers announce: changes of the fleet's status, and the results of keys. */
export class Spoken {
  text = '';
  private status: FleetStatus | null = null;
  private matches: number | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isSelectedByKeys = false;

  constructor(private readonly changed: () => void) {}

  announceStatus(status: FleetStatus): void {
    if (status !== this.status) {
      this.status = status;
      this.text = {
        loading: trans.__('Fleet: loading'),
        live: trans.__('Fleet: up to date'),
        partial: trans.__('Fleet: some of it could not be read'),
        updating: trans.__('Fleet: updating'),
        outdated: trans.__('Fleet: outdated'),
        error: trans.__('Fleet: no answer'),
      }[status];
    }
  }

  /** Announces how many GPUs match; `null` without a filter. */
  announceMatches(gpus: number | null): void {
    if (gpus !== this.matches) {
      this.matches = gpus;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => {
        if (gpus !== null) {
          this.text = trans._n('%1 GPU matches', '%2 GPUs match', gpus, count(gpus));
          this.changed();
        }
      }, PAUSE_MS);
    }
  }

  expectSelection(byKeys: boolean): void {
    this.isSelectedByKeys = byKeys;
  }

  /** Announces a row that keys selected, once: its values change by themselves. */
  announceSelection(text: () => string): void {
    if (this.isSelectedByKeys) {
      this.isSelectedByKeys = false;
      this.text = text();
    }
  }

  dispose(): void {
    clearTimeout(this.timer);
  }
}
