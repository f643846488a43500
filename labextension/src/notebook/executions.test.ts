import type { ISessionContext } from '@jupyterlab/apputils';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { ExecutionTracker } from './executions';

type Slot = (...args: unknown[]) => void;

/** The part of Lumino's `Signal` that is used here. */
class Signal {
  readonly slots = new Set<Slot>();
  connect = (slot: Slot): void => void this.slots.add(slot);
  disconnect = (slot: Slot): void => void this.slots.delete(slot);
  emit(...args: unknown[]): void {
    for (const slot of [...this.slots]) {
      slot(...args);
    }
  }
}

const anyMessage = new Signal();
const kernelChanged = new Signal();
const statusChanged = new Signal();
const kernel = { id: 'k', anyMessage };
let session: { session: { kernel: unknown } | null; kernelChanged: Signal; statusChanged: Signal };
let received: unknown[];
let tracker: ExecutionTracker;

beforeEach(() => {
  session = { session: { kernel }, kernelChanged, statusChanged };
  received = [];
  tracker = new ExecutionTracker(session as unknown as ISessionContext, {
    started: (...args) => received.push(['started', ...args]),
    ended: (...args) => received.push(['ended', ...args]),
    abandoned: () => received.push('abandoned'),
    failed: (execution, { ename }) => received.push(['failed', execution, ename]),
  });
  received = [];
});

afterEach(() => {
  tracker.dispose();
});

function sendRequest(id: string, cellId?: string): void {
  const metadata = cellId === undefined ? {} : { cellId };
  anyMessage.emit(kernel, {
    direction: 'send',
    msg: {
      header: { msg_type: 'execute_request', msg_id: id },
      metadata,
      content: { code: 'x = 1' },
    },
  });
}

function sendKernelMessage(
  type: string,
  id: string,
  date: string,
  content = {},
  metadata = {},
): void {
  const fullContent = { execution_count: 3, ...content };
  const msg = {
    header: { msg_type: type, date },
    parent_header: { msg_id: id },
    metadata,
    content: fullContent,
  };
  anyMessage.emit(kernel, { direction: 'recv', msg });
}

describe('cell executions', () => {
  it('kernel messages start and end an execution', () => {
    sendRequest('r1', 'a');
    sendRequest('r2', 'b');
    expect(received).toEqual([]);
    sendKernelMessage('execute_input', 'r1', '2026-11-20T10:42:07.250Z');
    sendKernelMessage('stream', 'r1', '2026-11-20T10:42:08Z');
    sendKernelMessage('execute_reply', 'r1', '2026-11-20T10:42:09.500Z');
    sendKernelMessage('execute_input', 'r2', '2026-11-20T10:42:09.600Z');
    const at = Date.UTC(2026, 10, 20, 10, 42);
    expect(received).toEqual([
      ['started', 'r1', { cellId: 'a', kernelId: 'k', at_ms: at + 7250, count: 3, code: 'x = 1' }],
      ['ended', 'r1', at + 9500],
      ['started', 'r2', { cellId: 'b', kernelId: 'k', at_ms: at + 9600, count: 3, code: 'x = 1' }],
    ]);
  });

  it('requests outside cells do not start an execution', () => {
    sendRequest('r1');
    sendKernelMessage('execute_input', 'r1', '2026-11-20T10:42:07Z');
    sendKernelMessage('execute_input', 'of another client', '2026-11-20T10:42:07Z');
    expect(received).toEqual([]);
  });

  it('execution without start message starts with its reply', () => {
    const date = '2026-11-20T10:42:07Z';
    const at = Date.parse(date);
    sendRequest('r1', 'a');
    sendKernelMessage(
      'execute_reply',
      'r1',
      date,
      { status: 'ok' },
      { started: '2026-11-20T10:42:06.500Z' },
    );
    sendKernelMessage('execute_input', 'r1', date);
    sendRequest('r2', 'b');
    sendKernelMessage('execute_reply', 'r2', date, { status: 'ok' });
    sendRequest('r3', 'c');
    sendKernelMessage('execute_reply', 'r3', date, { status: 'aborted' });
    expect(received).toEqual([
      ['started', 'r1', { cellId: 'a', kernelId: 'k', at_ms: at - 500, count: 3, code: 'x = 1' }],
      ['ended', 'r1', at],
      ['started', 'r2', { cellId: 'b', kernelId: 'k', at_ms: at, count: 3, code: 'x = 1' }],
      ['ended', 'r2', at],
      ['ended', 'r3', at],
    ]);
  });

  it('execution fails with error message or reply', () => {
    const date = '2026-11-20T10:42:07Z';
    sendRequest('r1', 'a');
    sendKernelMessage('error', 'r1', date, { ename: 'OutOfMemoryError' });
    sendRequest('r2', 'b');
    sendKernelMessage('execute_reply', 'r2', date, { status: 'error', ename: 'KeyError' });
    sendKernelMessage('error', 'r2', date, { ename: 'KeyError' });
    sendRequest('r3', 'c');
    sendKernelMessage('execute_reply', 'r3', date, { status: 'ok' });
    expect(received.filter((one) => Array.isArray(one) && one[0] === 'failed')).toEqual([
      ['failed', 'r1', 'OutOfMemoryError'],
      ['failed', 'r2', 'KeyError'],
    ]);
  });

  it('kernel restart abandons running executions', () => {
    sendRequest('r1', 'a');
    statusChanged.emit(session, 'busy');
    expect(received).toEqual([]);
    statusChanged.emit(session, 'restarting');
    expect(received).toEqual(['abandoned']);
    sendKernelMessage('execute_input', 'r1', '2026-11-20T10:42:07Z');
    expect(received).toEqual(['abandoned']);
  });

  it('messages of replaced kernel are ignored', () => {
    session.session = null;
    kernelChanged.emit();
    sendRequest('r1', 'a');
    sendKernelMessage('execute_input', 'r1', '2026-11-20T10:42:07Z');
    expect(received).toEqual(['abandoned']);
    tracker.dispose();
    expect([anyMessage, kernelChanged, statusChanged].map(({ slots }) => slots.size)).toEqual([
      0, 0, 0,
    ]);
  });
});
