/** The button that opens the dialog of benchmarks, whose content is loaded when it is first opened. */

import { button, h, setText } from '../lib/dom';
import { trans } from '../lib/translation';
import type { GpuState } from '../model/gpu';
import type { Store } from '../model/store';
import { closeByPressBeside } from './modal';
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
  private readonly content = h('div', { class: 'gpumon-run-content' });
  readonly element = h(
    'dialog',
    { class: 'gpumon-run-dialog', 'aria-label': trans.__('Benchmarks'), 'data-testid': 'gpumon-runs' },
    h(
      'div',
      { class: 'gpumon-run-title-bar' },
      h('h2', {}, trans.__('Benchmarks')),
      button(
        { class: 'gpumon-run-close', title: trans.__('Close') },
        () => this.element.close(),
        h('span', { 'aria-hidden': 'true' }, '✕'),
      ),
    ),
    this.content,
  );
  private dialog: RunDialog | null = null;

  constructor(
    private readonly store: Store,
    private readonly runner: Runner,
    private readonly invalidate: () => void,
  ) {
    this.element.addEventListener('close', () => runner.setRuns(false));
    closeByPressBeside(this.element);
    this.element.addEventListener('keydown', (event) => {
      // Keys mean nothing to what is below.
      event.stopPropagation();
      if (event.key === 'Escape') {
        // A search field would only be emptied.
        event.preventDefault();
        this.element.close();
      }
    });
  }

  open(): void {
    if (!this.element.open) {
      this.element.showModal();
      this.runner.setRuns(true);
      void this.load();
    }
  }

  render(gpus: readonly GpuState[], freshness: Freshness): void {
    if (this.element.open) {
      this.dialog?.render(gpus, freshness);
    }
  }

  private async load(): Promise<void> {
    try {
      const { RunDialog } = await import('./runs/dialog');
      this.dialog ??= new RunDialog(this.content, this.store, this.runner, this.invalidate);
      this.invalidate();
      await this.dialog.opened();
    } catch (error) {
      console.error('gpumon: a part of it cannot be loaded', error);
      setText(this.content, trans.__('This part of gpumon cannot be loaded. Reload the page.'));
    }
  }
}
