import type { ISessionContext } from '@jupyterlab/apputils';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { Runs } from './runs';

type Slot = (...args: unknown[]) => void;

/** Lumino's signal, as far as it is used here. */
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
let heard: unknown[];
let runs: Runs;

beforeEach(() => {
  session = { session: { kernel }, kernelChanged, statusChanged };
  heard = [];
  runs = new Runs(session as unknown as ISessionContext, {
    started: (...args) => heard.push(['started', ...args]),
    ended: (...args) => heard.push(['ended', ...args]),
    abandoned: () => heard.push('abandoned'),
  });
  heard = [];
});

afterEach(() => {
  runs.dispose();
});

function request(id: string, cellId?: string): void {
  const metadata = cellId === undefined ? {} : { cellId };
  anyMessage.emit(kernel, {
    direction: 'send',
    msg: { header: { msg_type: 'execute_request', msg_id: id }, metadata },
  });
}

function answer(type: string, id: string, date: string): void {
  const content = type === 'execute_input' ? { execution_count: 3, code: 'x = 1' } : {};
  const msg = { header: { msg_type: type, date }, parent_header: { msg_id: id }, metadata: {}, content };
  anyMessage.emit(kernel, { direction: 'recv', msg });
}

describe('the runs of cells', () => {
  it('begin when the kernel begins with them, not when they are asked for, and end with its answer', () => {
    request('r1', 'a');
    request('r2', 'b');
    expect(heard).toEqual([]);
    answer('execute_input', 'r1', '2026-11-20T10:42:07.250Z');
    answer('stream', 'r1', '2026-11-20T10:42:08Z');
    answer('execute_reply', 'r1', '2026-11-20T10:42:09.500Z');
    answer('execute_input', 'r2', '2026-11-20T10:42:09.600Z');
    const at = Date.UTC(2026, 10, 20, 10, 42);
    expect(heard).toEqual([
      ['started', 'r1', { cellId: 'a', kernelId: 'k', at_ms: at + 7250, count: 3, code: 'x = 1' }],
      ['ended', 'r1', at + 9500],
      ['started', 'r2', { cellId: 'b', kernelId: 'k', at_ms: at + 9600, count: 3, code: 'x = 1' }],
    ]);
  });

  it('are those of cells alone: a console, a completer and another client have none', () => {
    request('r1');
    answer('execute_input', 'r1', '2026-11-20T10:42:07Z');
    answer('execute_input', 'of another client', '2026-11-20T10:42:07Z');
    expect(heard).toEqual([]);
  });

  it('end with their kernel', () => {
    request('r1', 'a');
    statusChanged.emit(session, 'busy');
    expect(heard).toEqual([]);
    statusChanged.emit(session, 'restarting');
    expect(heard).toEqual(['abandoned']);
    answer('execute_input', 'r1', '2026-11-20T10:42:07Z');
    expect(heard).toEqual(['abandoned']);
  });

  it('are those of the present kernel', () => {
    session.session = null;
    kernelChanged.emit();
    request('r1', 'a');
    answer('execute_input', 'r1', '2026-11-20T10:42:07Z');
    expect(heard).toEqual(['abandoned']);
    runs.dispose();
    expect([anyMessage, kernelChanged, statusChanged].map(({ slots }) => slots.size)).toEqual([0, 0, 0]);
  });
});
