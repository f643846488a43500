/** The button that opens the dialog of benchmarks, which is loaded when it is first opened. */

import { button, h } from '../lib/dom';
import { trans } from '../lib/translation';
import type { GpuState } from '../model/gpu';
import type { Store } from '../model/store';
import { failedPart, part } from './part';
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
      title: trans.__('Benchmarks, stress test and out-of-memory demos, with verified results'),
      'aria-haspopup': 'dialog',
      'data-testid': 'gpumon-run',
    },
    () => this.open(),
    trans.__('Benchmarks…'),
  );
  /** Where the dialog is, once it has been opened. */
  readonly element = h('div');
  private dialog: RunDialog | null = null;

  constructor(
    private readonly store: Store,
    private readonly runner: Runner,
    private readonly invalidate: () => void,
  ) {}

  open(): void {
    void (this.dialog === null ? this.load() : this.dialog.open());
  }

  render(gpus: readonly GpuState[], freshness: Freshness): void {
    this.dialog?.render(gpus, freshness);
  }

  private async load(): Promise<void> {
    try {
      const { RunDialog } = await part(import('./runs/dialog'));
      if (this.dialog === null) {
        this.dialog = new RunDialog(this.store, this.runner, this.invalidate);
        this.element.replaceChildren(this.dialog.element);
      }
      await this.dialog.open();
    } catch (error) {
      this.element.replaceChildren(failedPart(error));
    }
  }
}
