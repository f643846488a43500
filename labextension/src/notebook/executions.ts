import type { KernelError } from '@gpumon/page/oom';
import type { ISessionContext } from '@jupyterlab/apputils';
import type { Kernel, KernelMessage } from '@jupyterlab/services';

export interface StartedExecution {
  cellId: string;
  kernelId: string;
  /** The start time by the kernel's clock. */
  at_ms: number;
  /** The kernel's execution count. */
  count: number | null;
  code: string;
}

/**
 * Receives the executions of a notebook's cells. `execution` identifies an execution; times are
 * those of the kernel's clock.
 */
export interface ExecutionListener {
  started: (execution: string, what: StartedExecution) => void;
  ended: (execution: string, at_ms: number) => void;
  /**
   * Called when the kernel has ended or was replaced. For executions that were still running, no
   * end will be reported.
   */
  abandoned: () => void;
  /**
   * Called with the error that the kernel reports for an execution. It may be called twice, because
   * kernels may report the same error in two messages.
   */
  failed?: (execution: string, error: KernelError) => void;
}

interface Request extends Pick<StartedExecution, 'cellId' | 'code'> {
  isStarted: boolean;
}

/**
 * Uses the messages of a notebook's kernel to detect when cells run, whatever the kernel's language
 * is. Cells wait for each other, so an execution does not start when it is requested. The message
 * `execute_input` marks the start and `execute_reply` the end. Both messages refer to the request.
 */
export class ExecutionTracker {
  private kernel: Kernel.IKernelConnection | null = null;
  /** The requests that have not been answered. */
  private readonly requests = new Map<string, Request>();

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
    if (kernel !== this.kernel) {
      this.kernel?.anyMessage.disconnect(this.onMessage);
      this.abandonExecutions();
      this.kernel = kernel;
      kernel?.anyMessage.connect(this.onMessage);
    }
  };

  private readonly onStatus = (_: ISessionContext, status: Kernel.Status): void => {
    if (status === 'restarting' || status === 'autorestarting' || status === 'dead') {
      this.abandonExecutions();
    }
  };

  private abandonExecutions(): void {
    this.requests.clear();
    this.listener.abandoned();
  }

  private readonly onMessage = (
    kernel: Kernel.IKernelConnection,
    { msg, direction }: Kernel.IAnyMessageArgs,
  ): void => {
    const type = msg.header.msg_type;
    if (direction === 'send') {
      const { cellId } = msg.metadata;
      if (type === 'execute_request' && typeof cellId === 'string') {
        const { code } = (msg as KernelMessage.IExecuteRequestMsg).content;
        this.requests.set(msg.header.msg_id, { cellId, code, isStarted: false });
      }
      return;
    }
    const execution = 'msg_id' in msg.parent_header ? msg.parent_header.msg_id : '';
    const request = this.requests.get(execution);
    if (request === undefined) {
      return;
    }
    const at_ms = Date.parse(msg.header.date);
    const content = msg.content as { status?: string; execution_count?: number | null };
    // The reply arrives on another channel than the other messages. After a short execution it may
    // arrive before all of them.
    const isReply = type === 'execute_reply';
    const isAnswered = isReply && (content.status === 'ok' || content.status === 'error');
    if ((type === 'execute_input' || isAnswered) && !request.isStarted) {
      request.isStarted = true;
      const { cellId, code } = request;
      const began_ms = isAnswered ? readStartTime(msg, at_ms) : at_ms;
      const count = content.execution_count ?? null;
      this.listener.started(execution, {
        cellId,
        code,
        kernelId: kernel.id,
        at_ms: began_ms,
        count,
      });
    }
    if (type === 'error' || (isAnswered && 'ename' in msg.content)) {
      this.listener.failed?.(execution, msg.content as KernelError);
    }
    if (isReply) {
      this.requests.delete(execution);
      this.listener.ended(execution, at_ms);
    }
  };
}

/**
 * Returns the start time of the execution from its reply, or `otherwise_ms` if the reply contains
 * no start time.
 */
function readStartTime({ metadata }: KernelMessage.IMessage, otherwise_ms: number): number {
  const { started } = metadata as { started?: unknown };
  const at_ms = typeof started === 'string' ? Date.parse(started) : NaN;
  return Number.isNaN(at_ms) ? otherwise_ms : at_ms;
}
