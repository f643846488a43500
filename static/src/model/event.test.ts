import { beforeAll, describe, expect, it } from 'vitest';

import { NOW, throttled } from '../testing/frames';
import type { Event } from '../wire';
import { eventRows, keepEvents, markedEvents, marksOf, processEvents, withEvent } from './event';
import { loadXids } from './xid';

beforeAll(loadXids);

const GPU = { index: 1, uuid: 'GPU-1' };

const xid: Event = {
  at_ms: NOW,
  gpu: GPU,
  what: 'xid',
  code: 79,
  pid: 4711,
  meaning: 'The GPU fell off the PCIe bus.',
  advice: 'Do something.',
};

const xidBegan: Event = {
  at_ms: NOW + 20,
  gpu: GPU,
  what: 'condition_began',
  condition: 'xid',
  code: 79,
  count: 1,
  last_ms: NOW,
  since_ms: NOW,
  severity: 'critical',
  text: 'Xid 79: it fell off the bus.',
};

function started(pid: number): Event {
  return {
    at_ms: NOW + pid,
    gpu: GPU,
    what: 'process_started',
    pid,
    name: 'train.py',
    user: 'ana',
    started_ms: NOW,
  };
}

function began(severity: 'notice' | 'warning' | 'critical', at_ms = NOW): Event {
  return { at_ms, gpu: GPU, what: 'condition_began', ...throttled(severity) };
}

describe('the list', () => {
  it('has the newest first', () => {
    const rows = eventRows(
      [began('notice'), { at_ms: NOW + 5, gpu: null, what: 'power_source_changed' }],
      false,
    );
    expect(rows.map(({ at_ms, gpu }) => [at_ms, gpu])).toEqual([
      [NOW + 5, null],
      [NOW, 1],
    ]);
  });

  it('says what an Xid means and what to do, once, as grave as its condition', () => {
    const rows = eventRows([xid, xidBegan], false);
    expect(rows).toMatchObject([
      {
        text: 'Xid 79 (process 4711): The GPU fell off the PCIe bus.',
        more: 'Check power, heat and seating, then reboot; if it comes back, the board or the slot is faulty.',
        level: 'critical',
      },
    ]);
    expect(eventRows([{ ...xid, gpu: { index: 2, uuid: null } }, xidBegan], false)).toHaveLength(2);
  });

  it('names processes that are gone by their own events', () => {
    const held: Event = {
      at_ms: NOW + 60_000,
      gpu: GPU,
      what: 'condition_began',
      condition: 'held_idle',
      bytes: 1,
      idle_ms: 1000,
      pids: [7, 8],
      since_ms: NOW + 60_000,
      severity: 'notice',
      text: '',
    };
    const before: Event = { ...started(7), name: 'before.py', started_ms: NOW - 1 } as Event;
    expect(eventRows([before, started(7), held], false)[0]?.text).toMatch(
      /^train\.py \(ana\), PID 8 idle/,
    );
  });

  it('leaves processes out until they are asked for', () => {
    expect(eventRows([started(7)], false)).toEqual([]);
    expect(eventRows([started(7)], true)[0]?.text).toBe('train.py (ana, PID 7) started');
    expect(processEvents([started(7), xid])).toBe(1);
  });

  it('tells the end of a condition from its beginning', () => {
    const [row] = eventRows(
      [{ at_ms: NOW, gpu: GPU, what: 'condition_ended', ...throttled('critical') }],
      false,
    );
    expect(row).toMatchObject({ resolved: true, level: 'none' });
    expect(row?.text).toMatch(/^Resolved: Clocks reduced/);
  });

  it('tells apart errors of memory that were corrected from those that were not', () => {
    const errors = (corrected: number, uncorrected: number): Event => ({
      at_ms: NOW,
      gpu: GPU,
      what: 'ecc_errors',
      corrected,
      uncorrected,
    });
    expect(eventRows([errors(1, 0)], false)[0]).toMatchObject({ level: 'notice', more: '' });
    expect(eventRows([errors(3, 1)], false)[0]).toMatchObject({
      level: 'critical',
      text: '1 uncorrected memory error, 3 memory errors corrected',
    });
  });

  it('keeps two lines apart that say the same of the same moment', () => {
    const keys = eventRows([began('notice'), began('notice')], false).map(({ key }) => key);
    expect(new Set(keys).size).toBe(2);
  });

  it('shows hostile names as text, and leaves out what only a newer server knows', () => {
    const evil: Event = {
      ...(started(7) as Extract<Event, { what: 'process_started' }>),
      name: 'a\u202etxt',
    };
    expect(eventRows([evil], true)[0]?.text).toContain('a\ufffdtxt');
    expect(
      eventRows([{ at_ms: NOW, gpu: null, what: 'unheard_of' } as unknown as Event], true),
    ).toEqual([]);
  });
});

describe('of more than a hundred events', () => {
  it('processes go first, the oldest of them before the others', () => {
    const many = [xid, ...Array.from({ length: 120 }, (_, i) => started(i))];
    const kept = keepEvents(many);
    expect(kept).toHaveLength(100);
    expect(kept[0]).toBe(xid);
    expect(kept[1]).toMatchObject({ pid: 21 });
  });

  it('the newest stay where none is about a process', () => {
    const kept = keepEvents(Array.from({ length: 130 }, (_, i) => began('notice', NOW + i)));
    expect(kept).toHaveLength(100);
    expect(kept[0]?.at_ms).toBe(NOW + 30);
  });
});

it('Xids, warnings and failures are marked on the time axis of their GPU, notices and processes never', () => {
  const lost: Event = { at_ms: NOW + 9, gpu: { index: 0, uuid: 'GPU-0' }, what: 'gpu_lost' };
  const over: Event = { at_ms: NOW, gpu: GPU, what: 'condition_ended', ...throttled('critical') };
  const marks = markedEvents([
    began('notice'),
    began('warning', NOW + 3),
    started(7),
    over,
    xid,
    xidBegan,
    lost,
  ]);
  expect(marks.get(1)).toMatchObject([
    { at_ms: NOW + 3, level: 'warning' },
    { at_ms: NOW, level: 'critical' },
  ]);
  expect(marks.get(0)).toEqual([
    { at_ms: NOW + 9, level: 'critical', text: 'GPU lost (fallen off the bus)' },
  ]);
});

describe('marks', () => {
  const mark = (at_ms: number, more: { user?: string } = {}): Event => {
    return { at_ms, gpu: null, what: 'mark', text: `epoch ${at_ms}`, ...more };
  };
  it('say who set them, and are no fault of a GPU', () => {
    const events = [mark(3, { user: 'ana' }), mark(4)];
    expect(eventRows(events, false).map(({ text, level }) => [text, level])).toEqual([
      ['Mark: epoch 4', 'none'],
      ['Mark: epoch 3 (ana)', 'none'],
    ]);
    expect(marksOf([...events, xid])).toEqual([
      { at_ms: 3, text: 'epoch 3 (ana)' },
      { at_ms: 4, text: 'epoch 4' },
    ]);
    expect(markedEvents(events).size).toBe(0);
  });

  it('stand where their moment is, and push out marks alone', () => {
    const at = (events: readonly Event[]): number[] => events.map(({ at_ms }) => at_ms);
    const known = [began('warning', 10), began('warning', 20)];
    expect(at(withEvent(withEvent(known, mark(15)), mark(5)))).toEqual([5, 10, 15, 20]);
    const many = Array.from({ length: 200 }, (_, i) => mark(100 + i));
    expect(at(many.reduce<readonly Event[]>(withEvent, known)).slice(0, 3)).toEqual([10, 20, 236]);
  });
});
