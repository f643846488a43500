/** The button that opens the run dialog, which is loaded when it is first opened. */

import { button, h, setAttribute, setShown, setText } from '../lib/dom';
import { trans } from '../lib/translation';
import type { GpuState } from '../model/gpu';
import type { Store } from '../model/store';
import type { RunDialog } from './runs/dialog';
import type { Freshness } from './value';

export interface Runner {
  request: (path: string, init?: RequestInit) => Promise<Response>;
  /** Whether the server is to tell what runs do. */
  setRuns: (on: boolean) => void;
}

export class RunEntry {
  readonly button = button(
    {
      class: 'gpumon-chip gpumon-run-button',
      title: trans.__('Run a benchmark, a stress test or an out-of-memory demo'),
      'aria-expanded': 'false',
      'data-testid': 'gpumon-run',
    },
    () => void this.toggle(),
    trans.__('Run'),
  );
  readonly element = h('section', {
    class: 'gpumon-section gpumon-run-dialog',
    'aria-label': trans.__('Run'),
    'data-testid': 'gpumon-runs',
  });
  private dialog: RunDialog | null = null;
  private open = false;

  constructor(
    private readonly store: Store,
    private readonly runner: Runner,
    private readonly invalidate: () => void,
  ) {
    setShown(this.element, false);
    this.element.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') {
        event.stopPropagation();
        void this.toggle();
        this.button.focus();
      }
    });
  }

  render(gpus: readonly GpuState[], freshness: Freshness): void {
    if (this.open) {
      this.dialog?.render(gpus, freshness);
    }
  }

  private async toggle(): Promise<void> {
    this.open = !this.open;
    setShown(this.element, this.open);
    setAttribute(this.button, 'aria-expanded', String(this.open));
    this.runner.setRuns(this.open);
    this.invalidate();
    if (!this.open || this.dialog !== null) {
      return;
    }
    try {
      const { RunDialog } = await import('./runs/dialog');
      this.dialog ??= new RunDialog(this.element, this.store, this.runner, this.invalidate);
      this.invalidate();
    } catch (error) {
      console.error('gpumon: a part of it cannot be loaded', error);
      setText(this.element, trans.__('This part of gpumon cannot be loaded. Reload the page.'));
    }
  }
}
