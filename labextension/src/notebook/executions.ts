/** When cells run, from the messages between a notebook and its kernel, whatever its language. */

import type { KernelError } from '@gpumon/page/oom';
import type { ISessionContext } from '@jupyterlab/apputils';
import type { Kernel, KernelMessage } from '@jupyterlab/services';

export interface StartedExecution {
  cellId: string;
  kernelId: string;
  /** The kernel's clock. */
  at_ms: number;
  /** As the kernel counts executions. */
  count: number | null;
  code: string;
}

/** Receives the executions of a notebook's cells. `execution` identifies an execution; times are the kernel's clock. */
export interface ExecutionListener {
  started: (execution: string, what: StartedExecution) => void;
  ended: (execution: string, at_ms: number) => void;
  /** The kernel is gone or another: no execution will end any more. */
  abandoned: () => void;
  /** It failed, and `error` is what the kernel says of that. It may be told twice. */
  failed?: (execution: string, error: KernelError) => void;
}

/**
 * Listens to the messages of a notebook's kernel. That a request was sent says nothing, since cells wait for each other:
 * an execution starts with `execute_input` and ends with `execute_reply`, which name the request.
 */
export class ExecutionTracker {
  private kernel: Kernel.IKernelConnection | null = null;
  /** The cell of each request that has not been answered. */
  private readonly cells = new Map<string, Pick<StartedExecution, 'cellId' | 'code'>>();
  /** Those of them that are known to run. */
  private readonly started = new Set<string>();

  constructor(
    private readonly session: ISessionContext,
    private readonly listener: ExecutionListener,
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
    this.started.clear();
    this.listener.abandoned();
  }

  private readonly onMessage = (
    kernel: Kernel.IKernelConnection,
    { msg, direction }: Kernel.IAnyMessageArgs,
  ): void => {
    if (direction === 'send') {
      const cellId = msg.header.msg_type === 'execute_request' ? msg.metadata.cellId : undefined;
      if (typeof cellId === 'string') {
        const { code } = (msg as KernelMessage.IExecuteRequestMsg).content;
        this.cells.set(msg.header.msg_id, { cellId, code });
      }
      return;
    }
    const execution = requestOf(msg);
    const request = this.cells.get(execution);
    if (request === undefined) {
      return;
    }
    const at_ms = Date.parse(msg.header.date);
    const type = msg.header.msg_type;
    // An answer and what comes with it go another way than all else, and a brief execution's may be the first to arrive.
    const answered =
      type === 'execute_reply' &&
      ['ok', 'error'].includes((msg as KernelMessage.IExecuteReplyMsg).content.status);
    if ((type === 'execute_input' || answered) && !this.started.has(execution)) {
      this.started.add(execution);
      const { execution_count: count } = msg.content as { execution_count: number | null };
      const began_ms = answered ? startOf(msg, at_ms) : at_ms;
      this.listener.started(execution, { ...request, kernelId: kernel.id, at_ms: began_ms, count });
    }
    if (type === 'error' || (answered && 'ename' in msg.content)) {
      this.listener.failed?.(execution, msg.content as KernelError);
    }
    if (type === 'execute_reply') {
      this.cells.delete(execution);
      this.started.delete(execution);
      this.listener.ended(execution, at_ms);
    }
  };
}

/** When the execution began that this answers, where the kernel tells it. */
function startOf({ metadata }: KernelMessage.IMessage, otherwise_ms: number): number {
  const at_ms =
    'started' in metadata && typeof metadata.started === 'string'
      ? Date.parse(metadata.started)
      : NaN;
  return Number.isNaN(at_ms) ? otherwise_ms : at_ms;
}

function requestOf(msg: KernelMessage.IMessage): string {
  return 'msg_id' in msg.parent_header ? msg.parent_header.msg_id : '';
}
