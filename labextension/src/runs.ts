/** When cells run, told by the messages between a notebook and its kernel, whatever its language. */

import type { ISessionContext } from '@jupyterlab/apputils';
import type { Kernel, KernelMessage } from '@jupyterlab/services';

/** A run of a cell that has begun. */
export interface StartedRun {
  cellId: string;
  kernelId: string;
  /** The kernel's clock. */
  at_ms: number;
  /** As the kernel counts executions. */
  count: number | null;
  code: string;
}

/** What is told of the runs of a notebook's cells. `run` tells a run from others; times are the kernel's clock. */
export interface RunListener {
  started: (run: string, what: StartedRun) => void;
  ended: (run: string, at_ms: number) => void;
  /** The kernel is gone or another: no run will end any more. */
  abandoned: () => void;
}

/**
 * Listens to the messages of a notebook's kernel. That a request was sent says nothing, since cells wait for each other:
 * a run starts with `execute_input` and ends with `execute_reply`, which name the request.
 */
export class Runs {
  private kernel: Kernel.IKernelConnection | null = null;
  /** The cell of each request that has not been answered. */
  private readonly cells = new Map<string, string>();

  constructor(
    private readonly session: ISessionContext,
    private readonly listener: RunListener,
  ) {
    session.kernelChanged.connect(this.follow);
    session.statusChanged.connect(this.onStatus);
    this.follow();
  }

  dispose(): void {
    this.session.kernelChanged.disconnect(this.follow);
    this.session.statusChanged.disconnect(this.onStatus);
    this.kernel?.anyMessage.disconnect(this.onMessage);
    this.kernel = null;
  }

  private readonly follow = (): void => {
    const kernel = this.session.session?.kernel ?? null;
    if (kernel === this.kernel) {
      return;
    }
    this.kernel?.anyMessage.disconnect(this.onMessage);
    this.abandon();
    this.kernel = kernel;
    kernel?.anyMessage.connect(this.onMessage);
  };

  private readonly onStatus = (_: ISessionContext, status: Kernel.Status): void => {
    if (status === 'restarting' || status === 'autorestarting' || status === 'dead') {
      this.abandon();
    }
  };

  private abandon(): void {
    this.cells.clear();
    this.listener.abandoned();
  }

  private readonly onMessage = (kernel: Kernel.IKernelConnection, { msg, direction }: Kernel.IAnyMessageArgs): void => {
    if (direction === 'send') {
      const cellId = msg.header.msg_type === 'execute_request' ? msg.metadata.cellId : undefined;
      if (typeof cellId === 'string') {
        this.cells.set(msg.header.msg_id, cellId);
      }
      return;
    }
    const run = requestOf(msg);
    const cellId = this.cells.get(run);
    if (cellId === undefined) {
      return;
    }
    const at_ms = Date.parse(msg.header.date);
    if (msg.header.msg_type === 'execute_input') {
      const { execution_count: count, code } = (msg as KernelMessage.IExecuteInputMsg).content;
      this.listener.started(run, { cellId, kernelId: kernel.id, at_ms, count, code });
    } else if (msg.header.msg_type === 'execute_reply') {
      this.cells.delete(run);
      this.listener.ended(run, at_ms);
    }
  };
}

/** The request that a message belongs to. */
function requestOf(msg: KernelMessage.IMessage): string {
  return 'msg_id' in msg.parent_header ? msg.parent_header.msg_id : '';
}
