import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { Timeline } from '../lib/timeline';
import { NOW } from '../testing/frames';
import { makeHistorySpan } from '../testing/history';
import type { Event, HistorySpan } from '../wire';
import { HistoryCache, type Need } from './history';
import type { Request } from './request';
import { ServerClock } from './store';

const HOUR = 3_600_000;
const KEY = 'GPU-0 power.draw_watts';

beforeEach(() => {
  vi.useFakeTimers();
  vi.setSystemTime(NOW);
});
afterEach(() => vi.useRealTimers());

interface RecordedRequest {
  query: URLSearchParams;
  signal: AbortSignal | null | undefined;
  answer: (span: HistorySpan) => Promise<void>;
  refuse: (status: number, why: string) => Promise<void>;
}

function createServer(): { asked: RecordedRequest[]; request: Request } {
  const asked: RecordedRequest[] = [];
  const request = vi.fn<Request>((path, init) => {
    let resolve: (response: Response) => void = () => undefined;
    const promise = new Promise<Response>((settled) => {
      resolve = settled;
    });
    const settle = async (response: Response): Promise<void> => {
      resolve(response);
      await vi.advanceTimersByTimeAsync(0);
    };
    asked.push({
      query: new URL(path, 'http://x/').searchParams,
      signal: init?.signal,
      answer: (span) => settle(Response.json(span)),
      refuse: (status, why) => settle(new Response(why, { status })),
    });
    return promise;
  });
  return { asked, request };
}

function createHistory(): {
  past: HistoryCache;
  asked: RecordedRequest[];
  timeline: Timeline;
  events: Event[];
  onChange: () => void;
} {
  const { asked, request } = createServer();
  const clock = new ServerClock();
  clock.observeFrameTime(NOW);
  const timeline = new Timeline(1000);
  const events: Event[] = [];
  const onChange = vi.fn();
  return {
    past: new HistoryCache({ request, store: { clock, timeline, gap_ms: 2500, events }, onChange }),
    asked,
    timeline,
    events,
    onChange,
  };
}

function createNeed(from_ms: number, to_ms: number, changes: Partial<Need> = {}): Need {
  return { from_ms, to_ms, points: 360, metrics: ['power.draw_watts'], ...changes };
}

/**
 * Returns the response of a server with a complete history. The power at each time, in watts,
 * equals the age of that time in seconds.
 */
function makeCompleteHistory({ query }: RecordedRequest): HistorySpan {
  const [from_ms = 0, to_ms = 0, points = 1] = ['from_ms', 'to_ms', 'points'].map((name) =>
    Number(query.get(name)),
  );
  const resolution_ms = Math.max(10_000, Math.ceil((to_ms - from_ms) / points / 10_000) * 10_000);
  const first_ms = Math.ceil(from_ms / resolution_ms) * resolution_ms;
  const count = Math.floor((to_ms - first_ms) / resolution_ms);
  const watts = Array.from(
    { length: count },
    (_, i) => (NOW - first_ms - i * resolution_ms) / 1000,
  );
  return makeHistorySpan({ from_ms: first_ms, to_ms, resolution_ms, oldest_ms: 0 }, watts);
}

const settled = (): Promise<unknown> => vi.advanceTimersByTimeAsync(500);

describe('server history', () => {
  it('history is requested once, with a margin', async () => {
    const { past, asked, onChange } = createHistory();
    expect(past.findOrRequestHistory(createNeed(NOW - 2 * HOUR, NOW - HOUR))).toBeNull();
    await settled();
    expect(past.isLoading).toBe(true);
    const [first] = asked;
    expect(Object.fromEntries(first?.query ?? [])).toEqual({
      from_ms: String(NOW - 2.5 * HOUR),
      to_ms: String(NOW - 0.5 * HOUR),
      points: '720',
      metrics: 'power.draw_watts',
    });
    await first?.answer(makeCompleteHistory(first));
    expect(onChange).toHaveBeenCalledOnce();
    expect(past.isLoading).toBe(false);
    const known = past.findOrRequestHistory(createNeed(NOW - 2 * HOUR, NOW - HOUR));
    expect(known?.source.values(KEY).length).toBeGreaterThan(700);
    expect([known?.areMeans, known?.knows(KEY), known?.knows('cpu')]).toEqual([true, true, false]);
    // These spans are within the requested margin and zoomed only slightly, so they need no new
    // request.
    past.findOrRequestHistory(createNeed(NOW - 2.4 * HOUR, NOW - 1.4 * HOUR));
    past.findOrRequestHistory(createNeed(NOW - 1.9 * HOUR, NOW - 1.2 * HOUR));
    await settled();
    expect(asked).toHaveLength(1);
  });

  it('zooming shows existing points until finer ones arrive', async () => {
    const { past, asked } = createHistory();
    past.findOrRequestHistory(createNeed(NOW - 24 * HOUR, NOW));
    await settled();
    await asked[0]?.answer(makeCompleteHistory(asked[0]));
    // While the user zooms with the wheel, only the final range is requested.
    for (let hours = 23; hours >= 1; hours -= 2) {
      const known = past.findOrRequestHistory(
        createNeed(NOW - 3 * HOUR - hours * HOUR, NOW - 3 * HOUR),
      );
      expect(known?.answer.resolution_ms).toBe(240_000);
      await vi.advanceTimersByTimeAsync(40);
    }
    await settled();
    expect(asked).toHaveLength(2);
    expect(asked[1]?.query.get('from_ms')).toBe(String(NOW - 4.5 * HOUR));
    await asked[1]?.answer(makeCompleteHistory(asked[1]));
    expect(
      past.findOrRequestHistory(createNeed(NOW - 4 * HOUR, NOW - 3 * HOUR))?.answer.resolution_ms,
    ).toBe(10_000);
    // The longer span is still known after zooming out again.
    expect(past.findOrRequestHistory(createNeed(NOW - 24 * HOUR, NOW))?.answer.resolution_ms).toBe(
      240_000,
    );
    await settled();
    expect(asked).toHaveLength(2);
  });

  it('obsolete request is canceled', async () => {
    const { past, asked } = createHistory();
    past.findOrRequestHistory(createNeed(NOW - 24 * HOUR, NOW));
    await settled();
    past.findOrRequestHistory(createNeed(NOW - 72 * HOUR, NOW - 48 * HOUR));
    await settled();
    expect(asked.map(({ signal }) => signal?.aborted)).toEqual([true, false]);
    await asked[0]?.answer(makeCompleteHistory(asked[0]));
    expect(past.findOrRequestHistory(createNeed(NOW - 72 * HOUR, NOW - 48 * HOUR))).toBeNull();
  });

  it('live samples extend the span until gap', async () => {
    const { past, asked, timeline } = createHistory();
    past.findOrRequestHistory(createNeed(NOW - HOUR, NOW));
    await settled();
    await asked[0]?.answer(makeCompleteHistory(asked[0]));
    const receive = (from_s: number, to_s: number): void => {
      for (let second = from_s; second <= to_s; second += 1) {
        timeline.push(NOW + second * 1000, new Map([[KEY, 1]]), 2500);
      }
    };
    receive(1, 30);
    const known = past.findOrRequestHistory(createNeed(NOW - HOUR + 30_000, NOW + 30_000));
    expect(known?.source.times_ms.at(-1)).toBe(NOW + 30_000);
    expect(known?.source.values(KEY).at(-1)).toBe(1);
    await settled();
    expect(asked).toHaveLength(1);
    receive(40, 41);
    vi.setSystemTime(NOW + 41_000);
    past.findOrRequestHistory(createNeed(NOW - HOUR + 41_000, NOW + 41_000));
    await settled();
    expect(asked, 'a gap').toHaveLength(2);
    await asked[1]?.answer(makeCompleteHistory(asked[1]));
    receive(42, 400);
    vi.setSystemTime(NOW + 400_000);
    past.findOrRequestHistory(createNeed(NOW - HOUR + 400_000, NOW + 400_000));
    await settled();
    expect(asked, 'many samples').toHaveLength(3);
  });

  it('failure is shown and retried later', async () => {
    const { past, asked } = createHistory();
    past.findOrRequestHistory(createNeed(NOW - HOUR, NOW));
    await settled();
    await asked[0]?.refuse(400, 'unknown metric');
    expect(past.failureReason).toBe('unknown metric');
    for (let i = 0; i < 5; i += 1) {
      past.findOrRequestHistory(createNeed(NOW - HOUR, NOW));
      await settled();
    }
    expect(asked).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(10_000);
    past.findOrRequestHistory(createNeed(NOW - HOUR, NOW));
    await settled();
    await asked[1]?.answer(makeCompleteHistory(asked[1]));
    expect([asked.length, past.failureReason]).toEqual([2, null]);
  });

  it('adding a metric keeps the loaded ones', async () => {
    const { past, asked } = createHistory();
    past.findOrRequestHistory(createNeed(NOW - HOUR, NOW));
    await settled();
    await asked[0]?.answer(makeCompleteHistory(asked[0]));
    const more = createNeed(NOW - HOUR, NOW, { metrics: ['fan_percent', 'power.draw_watts'] });
    expect(past.findOrRequestHistory(more)?.knows(KEY)).toBe(true);
    await settled();
    expect(asked[1]?.query.get('metrics')).toBe('fan_percent,power.draw_watts');
  });

  it('past and live events are merged without duplicates', async () => {
    const { past, asked, events } = createHistory();
    const mark = (at_ms: number, text: string): Event => ({ at_ms, gpu: null, what: 'mark', text });
    events.push(mark(NOW - 1000, 'b'), mark(NOW, 'c'));
    past.findOrRequestHistory(createNeed(NOW - HOUR, NOW));
    await settled();
    await asked[0]?.answer({
      ...makeCompleteHistory(asked[0]),
      events: [mark(NOW - HOUR, 'a'), mark(NOW - 1000, 'b')],
    });
    const known = past.findOrRequestHistory(createNeed(NOW - HOUR, NOW));
    expect(known?.events.map(({ at_ms }) => at_ms - NOW)).toEqual([-HOUR, -1000, 0]);
    expect(
      past.findOrRequestHistory(createNeed(NOW - HOUR, NOW))?.events,
      'the same until there is another',
    ).toBe(known?.events);
  });
});
