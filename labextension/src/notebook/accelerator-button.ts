import notebookStyle from '@gpumon/page/notebook.css?inline';
import { addStyleSheetOnce } from '@gpumon/page/dom';
import { Dialog, Notification, showDialog, showErrorMessage } from '@jupyterlab/apputils';
import type { Kernel } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Widget } from '@lumino/widgets';

import { findAccelerators, loadAccelerators, type Accelerator } from './accelerators';
import { addToToolbar, type NotebookPanel } from './notebook-panel';
import type { LabNotebooks } from './notebooks';

/** A toolbar button that makes a notebook's kernel run pandas and scikit-learn on the GPU. */
export class AcceleratorButton extends Widget {
  private readonly button = document.createElement('button');
  /** Whether the kernel was queried since it started. */
  private isQueried = false;
  private isLoading = false;
  /** Whether a click is still being handled. */
  private isPressed = false;

  constructor(
    private readonly panel: NotebookPanel,
    private readonly notebooks: Pick<LabNotebooks, 'describeKernelMemory'>,
    private readonly trans: TranslationBundle,
  ) {
    super({ node: document.createElement('span') });
    addStyleSheetOnce(notebookStyle);
    this.button.type = 'button';
    this.button.className = 'gpumon-toolbar-chip';
    this.button.dataset.testid = 'gpumon-accelerate';
    this.button.addEventListener('click', () => {
      if (!this.isPressed) {
        this.isPressed = true;
        void this.accelerate().finally(() => (this.isPressed = false));
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

  private get currentKernel(): Kernel.IKernelConnection | null {
    return this.panel.sessionContext.session?.kernel ?? null;
  }

  private readonly onKernel = (): void => {
    this.isQueried = false;
    this.showState([]);
    this.onStatus();
  };

  /** Queries the kernel once after each start, as soon as it is idle. */
  private readonly onStatus = (): void => {
    const status = this.currentKernel?.status;
    if (status === 'restarting' || status === 'autorestarting' || status === 'dead') {
      this.isQueried = false;
      this.showState([]);
    } else if (status === 'idle' && !this.isQueried) {
      this.isQueried = true;
      void this.queryAccelerators();
    }
  };

  /**
   * Queries the kernel for accelerators, shows them on the button, and returns them. Returns an
   * empty list if the kernel ends before it responds.
   */
  private async queryAccelerators(): Promise<Accelerator[]> {
    const { currentKernel } = this;
    const found =
      currentKernel === null ? [] : await findAccelerators(currentKernel).catch(() => null);
    if (found === null || currentKernel !== this.currentKernel || this.isDisposed) {
      return [];
    }
    this.showState(found);
    return found;
  }

  private showState(accelerators: readonly Accelerator[]): void {
    const { button, trans, isLoading } = this;
    const [names, libraries] = joinNamesAndLibraries(accelerators);
    const isOn = accelerators.length > 0 && accelerators.every((one) => one.isOn);
    button.hidden = accelerators.length === 0;
    button.textContent = isLoading
      ? trans.__('Accelerating…')
      : isOn
        ? trans.__('Accelerated')
        : trans.__('Accelerate');
    button.title = isOn
      ? trans.__('%1 on: %2 on the GPU, until the kernel restarts', names, libraries)
      : trans.__('Load %1 into this kernel, so that %2 run on the GPU', names, libraries);
    button.setAttribute('aria-pressed', String(isOn));
    button.setAttribute('aria-busy', String(isLoading));
  }

  private async accelerate(): Promise<void> {
    const { trans } = this;
    if (this.currentKernel?.status !== 'idle') {
      const message = trans.__('The kernel is busy. Load accelerators when it is idle.');
      Notification.info(message, { autoClose: 5000 });
      return;
    }
    // The kernel is queried again, because a cell may have loaded accelerators or imported a
    // library since the last query.
    const found = await this.queryAccelerators();
    const late = found.filter(({ isLate }) => isLate);
    if (found.length === 0) {
      return;
    }
    if (found.every(({ isOn }) => isOn)) {
      await this.offerRestart(trans.__('Restart without accelerators?'), trans.__('Restart'));
    } else if (
      late.length === 0 ||
      (await this.offerRestart(
        trans.__('%1 must be loaded before %2 is imported', ...joinNamesAndLibraries(late)),
        trans.__('Restart and Load'),
      ))
    ) {
      await this.load(found);
    }
  }

  private async offerRestart(title: string, label: string): Promise<boolean> {
    const { trans } = this;
    const { path } = this.panel.sessionContext;
    const holding = await this.notebooks.describeKernelMemory(path, this.currentKernel?.id ?? '');
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
    const { currentKernel, trans } = this;
    if (currentKernel === null) {
      return;
    }
    this.isLoading = true;
    this.isQueried = true;
    this.showState(accelerators);
    // Loading fails if the kernel ends meanwhile. The failure is ignored, because the kernel is
    // queried again after its next start.
    const loaded = await loadAccelerators(currentKernel, accelerators).catch(() => null);
    this.isLoading = false;
    this.showState(loaded?.accelerators ?? []);
    if (loaded !== null && loaded.failures.length > 0) {
      const title = trans.__('Not all accelerators could be loaded');
      await showErrorMessage(title, loaded.failures.join('\n'));
    }
  }
}

/**
 * Returns two comma-separated lists: the names of the accelerators, and the names of their
 * libraries.
 */
function joinNamesAndLibraries(accelerators: readonly Accelerator[]): [string, string] {
  return [
    accelerators.map(({ name }) => name).join(', '),
    accelerators.map(({ library }) => library).join(', '),
  ];
}
