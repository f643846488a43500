// @vitest-environment jsdom
import type { Feed, FeedListener } from '@gpumon/page/feed';
import type { MemoryWarning } from '@gpumon/page/memory-warning';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

interface ShownNotification {
  id: string;
  message: string;
  type: string;
  autoClose: number | false;
  actions: { label: string; callback: (event: Event) => void }[];
}

const page = vi.hoisted(() => ({ notifications: new Map<string, unknown>(), count: 0 }));

/**
 * Replaces JupyterLab's notifications. Each notification has a toast with its ID on the page, like
 * in JupyterLab.
 */
vi.mock('@jupyterlab/apputils', () => ({
  Notification: {
    manager: { has: (id: string) => page.notifications.has(id) },
    emit: (message: string, type: string, options: object) => {
      page.count += 1;
      const id = `n${page.count}`;
      page.notifications.set(id, { id, message, type, ...options });
      const toast = document.createElement('div');
      toast.id = id;
      document.body.append(toast);
      return id;
    },
    update: (change: { id: string }) => {
      if (page.notifications.has(change.id)) {
        page.notifications.set(change.id, change);
      }
    },
    dismiss: (id: string) => {
      page.notifications.delete(id);
      document.getElementById(id)?.remove();
    },
  },
}));
vi.mock('@gpumon/page/memory-warning', () => ({
  MemoryWarnings: class {
    update = (): MemoryWarning[] => warnings;
  },
}));

import { MemoryWatch } from './memory-chunk';
import type { LabNotebooks } from './notebooks';

let warnings: MemoryWarning[];
let listener: FeedListener;
let watch: MemoryWatch;
const update = vi.fn();
const unsubscribe = vi.fn();
const run = vi.fn();

const notifications = (): ShownNotification[] =>
  [...page.notifications.values()] as ShownNotification[];
const warning = (text: string, urgent = false): MemoryWarning => ({
  gpu: 0,
  text,
  urgent,
  kernelId: 'k',
});
/** Sends a sample `after_s` seconds after the last sample. */
function sendSample(after_s = 1): void {
  vi.advanceTimersByTime(after_s * 1000);
  listener({ type: 'sample' } as never);
}
function setPageHidden(hidden: boolean): void {
  Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
  document.dispatchEvent(new Event('visibilitychange'));
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.clearAllMocks();
  warnings = [];
  const feed = {
    subscribe: (one: FeedListener) => {
      listener = one;
      return { update, unsubscribe };
    },
  } as unknown as Feed;
  const notebooks = {
    actions: (kernelId: string) => [{ label: `Shut Down ${kernelId}`, caption: '', run }],
  };
  watch = new MemoryWatch(feed, notebooks as unknown as LabNotebooks);
});
afterEach(() => {
  watch.dispose();
  setPageHidden(false);
  vi.useRealTimers();
});

describe('memory warnings', () => {
  it('warning appears once, updates and disappears', () => {
    sendSample();
    expect(notifications()).toEqual([]);
    warnings = [warning('in 2 min')];
    sendSample();
    expect(notifications()).toMatchObject([
      { message: 'in 2 min', type: 'warning', autoClose: false },
    ]);
    warnings = [warning('in 90 s')];
    sendSample();
    expect(notifications()).toMatchObject([{ message: 'in 2 min' }]);
    sendSample(10);
    expect(notifications()).toMatchObject([{ id: notifications()[0]?.id, message: 'in 90 s' }]);
    warnings = [warning('in 50 s', true)];
    sendSample();
    expect(notifications()).toMatchObject([
      { message: 'in 50 s', type: 'error', autoClose: false },
    ]);
    warnings = [];
    sendSample();
    expect(notifications()).toEqual([]);
  });

  it('warning stays open during its action', () => {
    warnings = [warning('in 2 min')];
    sendSample();
    const [action] = notifications()[0]?.actions ?? [];
    const event = new Event('click', { cancelable: true });
    action?.callback(event);
    expect([action?.label, run.mock.calls.length, event.defaultPrevented]).toEqual([
      'Shut Down k',
      1,
      true,
    ]);
    expect(notifications()).toHaveLength(1);
  });

  it('dismissed warning is not shown again soon', () => {
    warnings = [warning('in 2 min')];
    sendSample();
    page.notifications.clear();
    warnings = [warning('in 20 s', true)];
    sendSample(60);
    warnings = [];
    sendSample();
    warnings = [warning('in 2 min')];
    sendSample();
    expect(notifications()).toEqual([]);
    sendSample(300);
    expect(notifications()).toHaveLength(1);
  });

  it('hidden notification is replaced by the next update', () => {
    warnings = [warning('in 2 min')];
    sendSample();
    sendSample();
    document.getElementById(notifications()[0]?.id ?? '')?.remove();
    warnings = [warning('in 20 s', true)];
    sendSample();
    expect(notifications()).toMatchObject([{ message: 'in 20 s', autoClose: 0 }]);
  });

  it('hidden page deactivates the memory watch', () => {
    setPageHidden(true);
    expect(update).toHaveBeenLastCalledWith({ active: false });
    warnings = [warning('in 2 min')];
    sendSample();
    expect(notifications()).toEqual([]);
    setPageHidden(false);
    expect(update).toHaveBeenLastCalledWith({ active: true });
    sendSample();
    expect(notifications()).toHaveLength(1);
  });

  it('disposal dismisses all notifications', () => {
    warnings = [warning('in 2 min')];
    sendSample();
    watch.dispose();
    watch.dispose();
    expect(notifications()).toEqual([]);
    expect(unsubscribe).toHaveBeenCalledOnce();
  });
});
