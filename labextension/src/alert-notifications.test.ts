// @vitest-environment jsdom
import type { Feed, FeedListener } from '@gpumon/page/feed';
import { beforeEach, expect, it, vi } from 'vitest';

const page = vi.hoisted(() => ({ notifications: new Map<string, unknown[]>(), count: 0 }));

vi.mock('@jupyterlab/apputils', () => ({
  Notification: {
    emit: (...told: unknown[]) => {
      page.count += 1;
      page.notifications.set(`n${page.count}`, told);
      return `n${page.count}`;
    },
    dismiss: (id: string) => page.notifications.delete(id),
  },
}));

import { notifyOfAlerts } from './alert-notifications';

type FiringAlert = Feed['store']['firing'][number];

const HOT_GPU_ALERT: FiringAlert = {
  gpu: { index: 0, uuid: 'GPU-0' },
  rule: 'hot',
  severity: 'critical',
  since_ms: 1,
  text: 'Temperature 87 °C',
};
const trans = {
  __: (text: string, ...words: unknown[]) =>
    text.replace(/%(\d)/g, (_, at) => String(words[at - 1])),
};

let listener: FeedListener;
let store: { firing: FiringAlert[] };
let end: () => void;
const update = vi.fn();
const unsubscribe = vi.fn();

function sendAlerts(...firing: FiringAlert[]): void {
  store.firing = firing;
  listener({ type: 'alerts', firing });
}
const shown = (): unknown[] => [...page.notifications.values()];

beforeEach(() => {
  page.notifications.clear();
  vi.clearAllMocks();
  store = { firing: [] };
  const subscribe = (one: FeedListener): unknown => {
    listener = one;
    return { update, unsubscribe };
  };
  end = notifyOfAlerts({ store, subscribe } as unknown as Feed, trans as never);
});

it('alert is shown once while it fires', () => {
  sendAlerts(HOT_GPU_ALERT);
  sendAlerts({ ...HOT_GPU_ALERT, text: 'Temperature 88 °C' });
  expect(shown()).toEqual([['GPU 0: hot: Temperature 87 °C', 'error', { autoClose: false }]]);
  sendAlerts(HOT_GPU_ALERT, {
    ...HOT_GPU_ALERT,
    gpu: null,
    rule: 'ram',
    severity: 'notice',
    text: 'RAM 96 %',
  });
  expect(shown()[1]).toEqual(['ram: RAM 96 %', 'info', { autoClose: 10_000 }]);
  sendAlerts();
  expect(shown()).toEqual([]);
  sendAlerts({ ...HOT_GPU_ALERT, since_ms: 2 });
  expect(shown()).toHaveLength(1);
});

it('closed notification is not shown again', () => {
  sendAlerts(HOT_GPU_ALERT);
  page.notifications.clear();
  sendAlerts(HOT_GPU_ALERT);
  expect(shown()).toEqual([]);
});

it('silenced rule does not show a notification', () => {
  sendAlerts({ ...HOT_GPU_ALERT, silenced: true });
  expect(shown()).toEqual([]);
  sendAlerts(HOT_GPU_ALERT);
  expect(shown()).toHaveLength(1);
});

it('end of inactive subscription dismisses notifications', () => {
  expect(update).toHaveBeenCalledWith({ active: false });
  sendAlerts(HOT_GPU_ALERT);
  end();
  expect(unsubscribe).toHaveBeenCalledOnce();
  expect(shown()).toEqual([]);
});
