import { beforeEach, expect, it, vi } from 'vitest';

const mocks = vi.hoisted(() => ({
  createFeedAndSetLanguage: vi.fn(),
  readMarks: vi.fn(),
  made: 0,
  disposed: 0,
}));

vi.mock('./stream', () => ({
  createFeedAndSetLanguage: mocks.createFeedAndSetLanguage,
  loadXids: () => Promise.resolve(),
}));
vi.mock('./launcher-entry', () => ({ readMarks: mocks.readMarks }));
vi.mock('@gpumon/page/feed', () => ({ chooseUnits: () => undefined }));
vi.mock('../alert-notifications', () => ({
  notifyOfAlerts: () => {
    mocks.made += 1;
    return () => (mocks.disposed += 1);
  },
}));

import type { Settings } from '../settings';
import { Connection } from './connection';

const trans = { __: (text: string) => text };
const chosen = (alertNotifications: boolean): Settings =>
  ({ alertNotifications, warnMinutes: 5 }) as Settings;
let connection: Connection;

beforeEach(() => {
  vi.clearAllMocks();
  Object.assign(mocks, { made: 0, disposed: 0 });
  mocks.createFeedAndSetLanguage.mockReturnValue({ store: {} });
  connection = new Connection({} as never, trans as never, 'en');
});

it('feed connects once if alert rules exist', async () => {
  mocks.readMarks.mockResolvedValue({ alerts: true, fleet: false, otherPackage: null });
  await connection.apply(chosen(true));
  await vi.waitFor(() => expect(mocks.made).toBe(1));
  await connection.apply(chosen(true));
  await vi.waitFor(() => expect(mocks.readMarks).toHaveBeenCalledOnce());
  expect([mocks.createFeedAndSetLanguage.mock.calls.length, mocks.made]).toEqual([1, 1]);
  await connection.apply(chosen(false));
  expect(mocks.disposed).toBe(1);
});

it('feed does not connect without alert rules', async () => {
  mocks.readMarks.mockResolvedValue({ alerts: false, fleet: false, otherPackage: null });
  await connection.apply(chosen(true));
  await vi.waitFor(() => expect(mocks.readMarks).toHaveBeenCalledOnce());
  await Promise.resolve();
  expect(mocks.createFeedAndSetLanguage).not.toHaveBeenCalled();
});

it('feed connects only after notifications are enabled', async () => {
  mocks.readMarks.mockResolvedValue({ alerts: true, fleet: false, otherPackage: null });
  await connection.apply(chosen(false));
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect([
    mocks.readMarks.mock.calls.length,
    mocks.createFeedAndSetLanguage.mock.calls.length,
  ]).toEqual([0, 0]);
  await connection.apply(chosen(true));
  await vi.waitFor(() => expect(mocks.made).toBe(1));
});

it('fleet is detected without connecting', async () => {
  mocks.readMarks.mockResolvedValue({ alerts: false, fleet: true, otherPackage: null });
  expect(await connection.willHaveFleet()).toBe(true);
  expect(await connection.willHaveFleet()).toBe(true);
  expect([
    mocks.readMarks.mock.calls.length,
    mocks.createFeedAndSetLanguage.mock.calls.length,
  ]).toEqual([1, 0]);
});
