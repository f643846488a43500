/** What others may use of the view. */

export { Feed } from './model/feed';
export type { FeedListener, FeedOptions, Subscription as FeedReader } from './model/feed';
export { mountDashboard } from './view/dashboard/index';
export type { DashboardMountOptions, MountedDashboard } from './view/dashboard/index';
export { mountMonitor } from './view/monitor';
export type { NotebookHost } from './view/notebook-host';
export type { MonitorOptions } from './view/monitor';
export type { Mounted } from './view/mount';
export type { Diagnosis } from './model/store';
export type { SocketLike } from './lib/socket';
