/** A button in a notebook's toolbar that has its kernel run pandas and scikit-learn on the GPU, where it can. */

import chipStyle from '@gpumon/page/chip.css?inline';
import { adoptStyle } from '@gpumon/page/style';
import { Dialog, Notification, showDialog, showErrorMessage } from '@jupyterlab/apputils';
import type { Kernel } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { findAccelerators, loadAccelerators, type Accelerator } from './accelerators';
import { addToToolbar, type NotebookPanel } from './notebook-panel';
import type { LabNotebooks } from './notebooks';

export class AcceleratorButton extends Widget {
  private readonly button = document.createElement('button');
  /** Whether the kernel has been asked since it started. */
  private queried = false;
  private loading = false;
  /** Whether somebody has pressed it, and not all of what follows is done. */
  private pressed = false;

  constructor(
    private readonly panel: NotebookPanel,
    private readonly notebooks: Pick<LabNotebooks, 'describeHolding'>,
    private readonly trans: TranslationBundle,
  ) {
    super({ node: document.createElement('span') });
    adoptStyle(chipStyle);
    this.button.type = 'button';
    this.button.className = 'gpumon-toolbar-chip';
    this.button.dataset.testid = 'gpumon-accelerate';
    this.button.addEventListener('click', () => {
      if (!this.pressed) {
        this.pressed = true;
        void this.accelerate().finally(() => {
          this.pressed = false;
        });
      }
    });
    this.node.append(this.button);
    this.showState([]);
    addToToolbar(panel, 'gpumon-accelerate', this);
    panel.sessionContext.kernelChanged.connect(this.onKernel);
    panel.sessionContext.statusChanged.connect(this.onStatus);
    this.onStatus();
  }

  override dispose(): void {
    this.panel.sessionContext.kernelChanged.disconnect(this.onKernel);
    this.panel.sessionContext.statusChanged.disconnect(this.onStatus);
    super.dispose();
  }

  private get kernel(): Kernel.IKernelConnection | null {
    return this.panel.sessionContext.session?.kernel ?? null;
  }

  private readonly onKernel = (): void => {
    this.queried = false;
    this.showState([]);
    this.onStatus();
  };

  /** Asks once per start of the kernel, and never one that has something to do. */
  private readonly onStatus = (): void => {
    const status = this.kernel?.status;
    if (status === 'restarting' || status === 'autorestarting' || status === 'dead') {
      this.queried = false;
      this.showState([]);
    } else if (status === 'idle' && !this.queried) {
      this.queried = true;
      void this.queryKernel();
    }
  };

  /** What the kernel has, now also on the button; `null` where it is gone before it answers. */
  private async queryKernel(): Promise<Accelerator[] | null> {
    const { kernel } = this;
    try {
      const found = kernel === null ? [] : await findAccelerators(kernel);
      if (kernel !== this.kernel || this.isDisposed) {
        return null;
      }
      this.showState(found);
      return found;
    } catch {
      return null;
    }
  }

  private showState(accelerators: readonly Accelerator[]): void {
    const { button, trans, loading } = this;
    const on = accelerators.length > 0 && accelerators.every(({ isOn }) => isOn);
    button.hidden = accelerators.length === 0;
    button.textContent = loading
      ? trans.__('Accelerating…')
      : on
        ? trans.__('Accelerated')
        : trans.__('Accelerate');
    button.title = on
      ? trans.__('%1 on: %2 on the GPU, until the kernel restarts', ...naming(accelerators))
      : trans.__('Load %1 into this kernel, so that %2 run on the GPU', ...naming(accelerators));
    button.setAttribute('aria-pressed', String(on));
    button.setAttribute('aria-busy', String(loading));
  }

  private async accelerate(): Promise<void> {
    const { trans } = this;
    if (this.kernel?.status !== 'idle') {
      Notification.info(trans.__('The kernel is busy. Load accelerators when it is idle.'), {
        autoClose: 5000,
      });
      return;
    }
    // A cell may have loaded them, or imported a library, since the kernel was asked.
    const found = await this.queryKernel();
    if (found === null || found.length === 0) {
      return;
    }
    const late = found.filter(({ isLate }) => isLate);
    if (found.every(({ isOn }) => isOn)) {
      await this.offerRestart(trans.__('Restart without accelerators?'), trans.__('Restart'));
    } else if (late.length === 0) {
      await this.load(found);
    } else {
      const [names, libraries] = naming(late);
      const title = trans.__('%1 must be loaded before %2 is imported', names, libraries);
      if (await this.offerRestart(title, trans.__('Restart and Load'))) {
        await this.load(found);
      }
    }
  }

  private async offerRestart(title: string, label: string): Promise<boolean> {
    const { trans } = this;
    const { path } = this.panel.sessionContext;
    const holding = await this.notebooks.describeHolding(path, this.kernel?.id ?? '');
    const { button } = await showDialog({
      title,
      body: `${holding} ${trans.__('This restarts the kernel. All variables are lost.')}`,
      buttons: [Dialog.cancelButton({ label: trans.__('Cancel') }), Dialog.warnButton({ label })],
      defaultButton: 0,
    });
    if (button.accept) {
      await this.panel.sessionContext.restartKernel();
    }
    return button.accept;
  }

  private async load(accelerators: readonly Accelerator[]): Promise<void> {
    const { kernel } = this;
    if (kernel === null) {
      return;
    }
    this.loading = true;
    this.queried = true;
    this.showState(accelerators);
    try {
      const { accelerators: after, failures } = await loadAccelerators(kernel, accelerators);
      this.loading = false;
      this.showState(after);
      if (failures.length > 0) {
        await showErrorMessage(
          this.trans.__('Not all accelerators could be loaded'),
          failures.join('\n'),
        );
      }
    } catch {
      // The kernel was restarted or is gone; the next start is asked anew.
      this.loading = false;
      this.showState([]);
    }
  }
}

function naming(accelerators: readonly Accelerator[]): [string, string] {
  return [
    accelerators.map(({ name }) => name).join(', '),
    accelerators.map(({ library }) => library).join(', '),
  ];
}
