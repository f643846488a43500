import { beforeAll, describe, expect, it } from 'vitest';

import { NOW, makeThrottledCondition } from '../testing/frames';
import type { Event } from '../wire';
import {
  eventRows,
  keepNewestEvents,
  groupProblemEventsByGpu,
  marksOf,
  countProcessEvents,
  addEvent,
} from './event';
import { loadXids } from './alerts';

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

function processStarted(pid: number): Event {
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

function conditionBegan(severity: 'notice' | 'warning' | 'critical', at_ms = NOW): Event {
  return { at_ms, gpu: GPU, what: 'condition_began', ...makeThrottledCondition(severity) };
}

describe('event list', () => {
  it('newest event is first', () => {
    const rows = eventRows(
      [conditionBegan('notice'), { at_ms: NOW + 5, gpu: null, what: 'power_source_changed' }],
      false,
    );
    expect(rows.map(({ at_ms, gpu }) => [at_ms, gpu])).toEqual([
      [NOW + 5, null],
      [NOW, 1],
    ]);
  });

  it('Xid is listed once with meaning and advice', () => {
    const rows = eventRows([xid, xidBegan], false);
    expect(rows).toMatchObject([
      {
        text: 'Xid 79 (process 4711): The GPU fell off the PCIe bus.',
        more: 'Check power, cooling and seating, then reboot; if the error recurs, the board or the slot is faulty.',
        level: 'critical',
      },
    ]);
    expect(eventRows([{ ...xid, gpu: { index: 2, uuid: null } }, xidBegan], false)).toHaveLength(2);
  });

  it('ended processes are named by their events', () => {
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
    const before: Event = { ...processStarted(7), name: 'before.py', started_ms: NOW - 1 } as Event;
    expect(eventRows([before, processStarted(7), held], false)[0]?.text).toMatch(
      /^train\.py \(ana\), PID 8 idle/,
    );
  });

  it('process events are listed on request', () => {
    expect(eventRows([processStarted(7)], false)).toEqual([]);
    expect(eventRows([processStarted(7)], true)[0]?.text).toBe('train.py (ana, PID 7) started');
    expect(countProcessEvents([processStarted(7), xid])).toBe(1);
  });

  it('ended condition is shown as resolved', () => {
    const [row] = eventRows(
      [{ at_ms: NOW, gpu: GPU, what: 'condition_ended', ...makeThrottledCondition('critical') }],
      false,
    );
    expect(row).toMatchObject({ resolved: true, level: 'none' });
    expect(row?.text).toMatch(/^Resolved: Clocks reduced/);
  });

  it('corrected and uncorrected memory errors have different levels', () => {
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

  it('equal events at same time are both listed', () => {
    const keys = eventRows([conditionBegan('notice'), conditionBegan('notice')], false).map(
      ({ key }) => key,
    );
    expect(new Set(keys).size).toBe(2);
  });

  it('hostile names are text, unknown events omitted', () => {
    const evil: Event = {
      ...(processStarted(7) as Extract<Event, { what: 'process_started' }>),
      name: 'a\u202etxt',
    };
    expect(eventRows([evil], true)[0]?.text).toContain('a\ufffdtxt');
    expect(
      eventRows([{ at_ms: NOW, gpu: null, what: 'unheard_of' } as unknown as Event], true),
    ).toEqual([]);
  });
});

describe('more than a hundred events', () => {
  it('oldest process events are dropped first', () => {
    const many = [xid, ...Array.from({ length: 120 }, (_, i) => processStarted(i))];
    const kept = keepNewestEvents(many);
    expect(kept).toHaveLength(100);
    expect(kept[0]).toBe(xid);
    expect(kept[1]).toMatchObject({ pid: 21 });
  });

  it('oldest events are dropped if none is frequent', () => {
    const kept = keepNewestEvents(
      Array.from({ length: 130 }, (_, i) => conditionBegan('notice', NOW + i)),
    );
    expect(kept).toHaveLength(100);
    expect(kept[0]?.at_ms).toBe(NOW + 30);
  });
});

it('charts mark only Xids, warnings and failures', () => {
  const lost: Event = { at_ms: NOW + 9, gpu: { index: 0, uuid: 'GPU-0' }, what: 'gpu_lost' };
  const over: Event = {
    at_ms: NOW,
    gpu: GPU,
    what: 'condition_ended',
    ...makeThrottledCondition('critical'),
  };
  const marks = groupProblemEventsByGpu([
    conditionBegan('notice'),
    conditionBegan('warning', NOW + 3),
    processStarted(7),
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
  it('mark shows its user and has no severity', () => {
    const events = [mark(3, { user: 'ana' }), mark(4)];
    expect(eventRows(events, false).map(({ text, level }) => [text, level])).toEqual([
      ['Mark: epoch 4', 'none'],
      ['Mark: epoch 3 (ana)', 'none'],
    ]);
    expect(marksOf([...events, xid])).toEqual([
      { at_ms: 3, text: 'epoch 3 (ana)' },
      { at_ms: 4, text: 'epoch 4' },
    ]);
    expect(groupProblemEventsByGpu(events).size).toBe(0);
  });

  it('marks are sorted and displace only older marks', () => {
    const at = (events: readonly Event[]): number[] => events.map(({ at_ms }) => at_ms);
    const known = [conditionBegan('warning', 10), conditionBegan('warning', 20)];
    expect(at(addEvent(addEvent(known, mark(15)), mark(5)))).toEqual([5, 10, 15, 20]);
    const many = Array.from({ length: 200 }, (_, i) => mark(100 + i));
    expect(at(many.reduce<readonly Event[]>(addEvent, known)).slice(0, 3)).toEqual([10, 20, 236]);
  });
});
