/** The views' public interface for embedding applications. */

export { Feed } from './model/feed';
export { mountDashboard } from './view/dashboard/index';
export type { MountedDashboard } from './view/dashboard/index';
export { mountMonitor } from './view/monitor';
export type { Monitor } from './view/monitor';
export type { NotebookHost } from './view/notebook-host';
export type { MountHandle, MountOptions } from './view/mount';
export type { ViewOptions } from './view/store-view';
export type { Diagnosis } from './model/store';
export type { SocketLike } from './lib/socket';
