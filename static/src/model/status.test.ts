import { beforeEach, describe, expect, it } from 'vitest';

import { makeGpu, makeHello, makeInventory, NOW, makeSample } from '../testing/frames';
import { noticeOf, statusOf } from './status';
import { Store } from './store';

let now_ms: number;
let store: Store;
beforeEach(() => {
  now_ms = NOW;
  store = new Store(() => now_ms);
});

function connectionState(): string {
  return statusOf(store, now_ms).state;
}

describe('connection status', () => {
  it('status changes from connecting to live', () => {
    expect(connectionState()).toBe('connecting');
    store.phase = { phase: 'open' };
    expect(connectionState()).toBe('connecting');
    store.apply(makeHello());
    expect(connectionState()).toBe('live');
  });

  it('status shows interval of drawn frames, not samples', () => {
    store.phase = { phase: 'open' };
    store.apply(makeHello({ sample: makeSample(NOW, [makeGpu(0)], 100) }));
    const shown = (drawn_ms: number): string[] => {
      const { text, title } = statusOf(store, now_ms, drawn_ms);
      return [text, title].map((one) => one.replaceAll('\u00a0', ' '));
    };
    expect(shown(0)).toEqual(['Live · every 0.1 s', 'One sample every 0.1 s.']);
    expect(shown(420)).toEqual([
      'Live · every 0.5 s',
      'One sample every 0.1 s. Numbers are updated every 0.5 s. Charts show all samples.',
    ]);
  });

  it('replayed recording never has status "Live"', () => {
    store.phase = { phase: 'open' };
    const playback = { from_ms: NOW, to_ms: NOW + 60_000, speed: 10, paused: false, ended: false };
    store.apply(makeHello({ inventory: { ...makeInventory(1), playback } }));
    now_ms += 86_400_000;
    expect(connectionState()).toBe('replay');
    expect(statusOf(store, now_ms)).toMatchObject({ text: 'Replay · 10×', level: 'paused' });
    expect(store.clock.now()).toBe(NOW);
    store.apply({
      type: 'inventory',
      ...makeInventory(1),
      playback: { ...playback, paused: true },
    });
    expect(statusOf(store, now_ms).text).toBe('Paused');
    store.apply({ type: 'inventory', ...makeInventory(1) });
    expect(connectionState()).toBe('stale');
  });

  it('status is stale without samples', () => {
    store.phase = { phase: 'open' };
    store.apply(makeHello());
    now_ms += 4000;
    expect(connectionState()).toBe('live');
    now_ms += 2000;
    expect(statusOf(store, now_ms)).toMatchObject({
      state: 'stale',
      text: 'No sample for 6\u00a0s',
    });
    store.apply({ type: 'sample', ...makeSample(now_ms, [makeGpu(0)]) });
    expect(connectionState()).toBe('live');
  });

  it('pause does not make the status stale', () => {
    store.phase = { phase: 'open' };
    store.apply(makeHello());
    now_ms += 600_000;
    store.resetExpectedTime();
    expect(connectionState()).toBe('live');
  });

  it('status counts down to the next attempt', () => {
    store.apply(makeHello());
    store.phase = { phase: 'waiting', attempt: 3, retry_at_ms: now_ms + 4000 };
    expect(statusOf(store, now_ms)).toMatchObject({
      state: 'reconnecting',
      text: 'Reconnecting in 4\u00a0s',
    });
  });

  it.each(['starting', 'restarting', 'unavailable'] as const)(
    'status shows that collector is %s',
    (collector) => {
      store.phase = { phase: 'open' };
      store.apply(
        makeHello({ collector: { state: collector, since_ms: NOW, message: 'the reason' } }),
      );
      const status = statusOf(store, now_ms);
      expect(status.state).toBe(`collector-${collector}`);
      expect(noticeOf(store, status, '')?.message).toMatch(/^The reason/);
    },
  );
});

describe('status of a joined server', () => {
  it('status names joined server and suggests sudo', () => {
    const collector = {
      state: 'running',
      since_ms: NOW,
      message: null,
      joined: '/run/gpumon/public.sock',
    } as const;
    store.phase = { phase: 'open' };
    store.apply(makeHello({ collector }));
    expect(statusOf(store, now_ms).title).toContain(
      'read by the server at /run/gpumon/public.sock',
    );
    store.apply(makeHello({ collector: { ...collector, state: 'paused' } }));
    expect(noticeOf(store, statusOf(store, now_ms), '')?.command).toBe('sudo gpumon resume');
  });
});

describe('notice', () => {
  function pauseNoticeOf(message: string | null, resumes_ms?: number): ReturnType<typeof noticeOf> {
    store.phase = { phase: 'open' };
    const end = resumes_ms === undefined ? {} : { resumes_ms };
    store.apply(makeHello({ collector: { state: 'paused', since_ms: NOW, message, ...end } }));
    const status = statusOf(store, now_ms);
    expect(status).toMatchObject({ state: 'collector-paused', level: 'paused' });
    return noticeOf(store, status, '');
  }

  it('pause notice has reason and resume command', () => {
    const notice = pauseNoticeOf('paused: the GPUs are released until `gpumon resume`');
    expect(notice).toMatchObject({
      title: 'Paused: gpumon has released the GPUs',
      command: 'gpumon resume',
    });
    expect(notice?.message).not.toContain('automatically');
    expect(pauseNoticeOf(null, NOW)?.message).toMatch(/Resumes automatically at \d\d:\d\d\./);
  });

  it('pause notice of stuck collector shows its message', () => {
    const notice = pauseNoticeOf(
      'paused, but a collector is stuck in the driver and still holds the GPUs',
    );
    expect(notice?.title).toBe('Paused');
    expect(notice?.message).toContain('Paused, but a collector is stuck');
  });

  it('reconnect keeps the last readings', () => {
    store.apply(makeHello());
    store.phase = { phase: 'waiting', attempt: 1, retry_at_ms: now_ms };
    expect(noticeOf(store, statusOf(store, now_ms), '')).toBeNull();
    store.diagnosis = { title: 'missing', message: 'install it' };
    expect(noticeOf(store, statusOf(store, now_ms), '')).toEqual(store.diagnosis);
  });

  it('driver failure notice mentions retry and diagnosis', () => {
    store.phase = { phase: 'open' };
    store.apply(
      makeHello({
        collector: { state: 'unavailable', since_ms: NOW, message: 'no driver; install it' },
      }),
    );
    const notice = noticeOf(store, statusOf(store, now_ms), '');
    expect(notice?.message).toMatch(/^No driver; install it\. Retrying automatically\./);
    expect(notice?.command).toBe('gpumon doctor');
  });

  it('missing GPUs are reported', () => {
    store.phase = { phase: 'open' };
    store.apply(makeHello({ inventory: makeInventory(0), sample: makeSample(NOW, []) }));
    expect(noticeOf(store, statusOf(store, now_ms), '')?.title).toBe('No GPU');
  });
});
