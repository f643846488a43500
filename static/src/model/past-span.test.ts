import { describe, expect, it } from 'vitest';

import { Timeline } from '../lib/timeline';
import { makeHistorySpan } from '../testing/history';
import { JoinedSeries, PastSpan, type RequestedSpan } from './history';

const REQUESTED_SPAN: RequestedSpan = {
  from_ms: 0,
  to_ms: 60_000,
  points: 6,
  metrics: ['power.draw_watts'],
};
const KEY = 'GPU-0 power.draw_watts';

function createLiveTimeline(...samples: [at_ms: number, watts: number][]): Timeline {
  const timeline = new Timeline(100);
  for (const [at_ms, watts] of samples) {
    timeline.push(at_ms, new Map([[KEY, watts]]), 2500);
  }
  return timeline;
}

/** Returns the series of a span without later samples. */
function joinWithoutLiveSamples(past: PastSpan): JoinedSeries {
  return new JoinedSeries(past, new Timeline(100), '', past.answer.to_ms);
}

function joinPoints(past: PastSpan, timeline: Timeline, to_ms: number): [number, number][] {
  const series = new JoinedSeries(past, timeline, '', to_ms);
  const values = series.values(KEY);
  return Array.from(series.times_ms, (at_ms, i) => [at_ms, values[i] ?? 0]);
}

describe('past span', () => {
  it('means and extremes are at centers of intervals', () => {
    const past = new PastSpan(REQUESTED_SPAN, makeHistorySpan({}, [100, null, 300]), 2500);
    expect([...past.times_ms]).toEqual([5000, 15_000, 25_000]);
    const extremes = joinWithoutLiveSamples(past).readExtremes(KEY);
    expect([...joinWithoutLiveSamples(past).values(KEY)]).toEqual([100, NaN, 300]);
    expect([[...(extremes?.low ?? [])], [...(extremes?.high ?? [])]]).toEqual([
      [90, NaN, 290],
      [110, NaN, 310],
    ]);
    expect(past.series.has('GPU-0 fan_percent')).toBe(false);
  });

  it('missing points leave a gap between samples', () => {
    const sampled = makeHistorySpan(
      { resolution_ms: 1000, times_ms: [1000, 2000, 9000] },
      [1, 2, 3],
    );
    const past = new PastSpan(REQUESTED_SPAN, sampled, 2500);
    expect([...past.times_ms]).toEqual([1000, 2000, 2001, 9000]);
    expect([...joinWithoutLiveSamples(past).values(KEY)]).toEqual([1, 2, NaN, 3]);
    expect([past.areMeans, joinWithoutLiveSamples(past).readExtremes(KEY)]).toEqual([false, null]);
    const slow = new PastSpan(
      REQUESTED_SPAN,
      { ...sampled, times_ms: [1000, 6000, 11_000] },
      12_500,
    );
    expect(slow.times_ms, 'samples that come slowly').toHaveLength(3);
  });

  it('first and last mean are centered between data', () => {
    const past = new PastSpan(
      REQUESTED_SPAN,
      makeHistorySpan({ oldest_ms: 8000, to_ms: 22_000 }, [1, 2, 3]),
      2500,
    );
    expect([...past.times_ms]).toEqual([9000, 15_000, 21_000]);
  });
});

describe('past span and live samples', () => {
  const past = new PastSpan(REQUESTED_SPAN, makeHistorySpan({}, [100, 200, 300]), 2500);

  it('span and live samples are joined without duplicates', () => {
    const timeline = createLiveTimeline([28_000, 1], [29_000, 2], [30_500, 310], [31_500, 320]);
    expect(joinPoints(past, timeline, 40_000)).toEqual([
      [5000, 100],
      [15_000, 200],
      [25_000, 300],
      [30_500, 310],
      [31_500, 320],
    ]);
    const series = new JoinedSeries(past, timeline, '', 40_000);
    expect([...(series.readExtremes(KEY)?.high ?? [])]).toEqual([110, 210, 310, 310, 320]);
    expect(series.readExtremes('cpu')).toBeNull();
    expect([...series.values('cpu')]).toEqual([NaN, NaN, NaN, NaN, NaN]);
  });

  it('missing samples leave a gap', () => {
    expect(joinPoints(past, createLiveTimeline([50_000, 7]), 60_000).slice(2)).toEqual([
      [25_000, 300],
      [25_001, NaN],
      [50_000, 7],
    ]);
  });

  it('samples after the requested end are omitted', () => {
    expect(
      joinPoints(past, createLiveTimeline([30_500, 310], [31_500, 320], [32_500, 330]), 31_000),
    ).toHaveLength(5);
    expect(joinPoints(past, createLiveTimeline([30_500, 310]), 20_000)).toHaveLength(3);
  });
});
