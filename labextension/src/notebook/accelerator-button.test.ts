// @vitest-environment jsdom
import { beforeEach, describe, expect, it, vi } from 'vitest';

vi.mock('@jupyterlab/apputils', () => ({
  Notification: { info: vi.fn() },
  Dialog: { cancelButton: vi.fn(), warnButton: vi.fn() },
  showDialog: vi.fn(() => Promise.resolve({ button: { accept: false } })),
}));
vi.mock('@lumino/widgets', () => ({
  Widget: class {
    readonly node: HTMLElement;
    constructor({ node }: { node: HTMLElement }) {
      this.node = node;
      document.body.replaceChildren(node);
    }
  },
}));
vi.mock('./accelerators', () => ({ findAccelerators: vi.fn(), loadAccelerators: vi.fn() }));

import { Notification, showDialog } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';

import { AcceleratorButton } from './accelerator-button';
import { findAccelerators, loadAccelerators } from './accelerators';
import type { NotebookPanel } from './notebook-panel';

const INACTIVE_ACCELERATOR = { name: 'cudf.pandas', library: 'pandas', isOn: false, isLate: false };

let status: string;
let changed: () => void;

/** Returns the accelerator button of a notebook whose kernel has the initial status `first`. */
function createButton(first: string): HTMLButtonElement {
  const kernel = {
    get status() {
      return status;
    },
  };
  status = first;
  const panel = {
    toolbar: { insertBefore: () => true },
    sessionContext: {
      path: 'first/train.ipynb',
      session: { kernel },
      kernelChanged: { connect: vi.fn() },
      statusChanged: { connect: (slot: () => void) => (changed = slot) },
    },
  };
  const notebooks = {
    describeKernelMemory: (path: string) => Promise.resolve(`${path} holds 8 GiB of GPU 0.`),
  };
  new AcceleratorButton(panel as unknown as NotebookPanel, notebooks, nullTranslator.load(''));
  const button = document.querySelector('button');
  if (button === null) {
    throw new Error('no button');
  }
  return button;
}

function setStatus(now: string): void {
  status = now;
  changed();
}

beforeEach(() => {
  vi.clearAllMocks();
  vi.mocked(findAccelerators).mockResolvedValue([INACTIVE_ACCELERATOR]);
  vi.mocked(loadAccelerators).mockResolvedValue({
    accelerators: [{ ...INACTIVE_ACCELERATOR, isOn: true }],
    failures: [],
  });
});

describe('accelerator query', () => {
  it('idle kernel is queried once per start', async () => {
    const button = createButton('busy');
    expect(findAccelerators).not.toHaveBeenCalled();
    expect(button.hidden).toBe(true);
    setStatus('idle');
    setStatus('busy');
    setStatus('idle');
    expect(findAccelerators).toHaveBeenCalledTimes(1);
    await vi.waitFor(() => expect(button.hidden).toBe(false));
    setStatus('restarting');
    expect(button.hidden).toBe(true);
    setStatus('idle');
    expect(findAccelerators).toHaveBeenCalledTimes(2);
  });
});

describe('accelerator button', () => {
  it('repeated clicks load accelerators once', async () => {
    const button = createButton('idle');
    await vi.waitFor(() => expect(button.textContent).toBe('Accelerate'));
    button.click();
    button.click();
    await vi.waitFor(() => expect(button.textContent).toBe('Accelerated'));
    expect(loadAccelerators).toHaveBeenCalledTimes(1);
    expect(button.getAttribute('aria-pressed')).toBe('true');
  });

  it('busy kernel is neither queried nor accelerated', () => {
    const button = createButton('busy');
    button.click();
    expect(Notification.info).toHaveBeenCalledTimes(1);
    expect(findAccelerators).not.toHaveBeenCalled();
  });

  it('declined restart leaves kernel running', async () => {
    vi.mocked(findAccelerators).mockResolvedValue([{ ...INACTIVE_ACCELERATOR, isLate: true }]);
    const button = createButton('idle');
    button.click();
    await vi.waitFor(() => expect(showDialog).toHaveBeenCalledTimes(1));
    const [asked] = vi.mocked(showDialog).mock.calls[0] ?? [];
    expect(asked?.title).toContain('before pandas is imported');
    expect(asked?.body).toMatch(/^first\/train\.ipynb holds 8 GiB of GPU 0\. .* lost\.$/);
    expect(loadAccelerators).not.toHaveBeenCalled();
  });
});
