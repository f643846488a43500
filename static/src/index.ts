/** The views' public interface for embedding applications. */

export { Feed } from './model/feed';
export { mountDashboard } from './view/dashboard/index';
export type { MountedDashboard } from './view/dashboard/index';
export { mountMonitor } from './view/overview';
export type { Monitor } from './view/overview';
export type { NotebookHost } from './view/notebook';
export type { MountHandle, MountOptions, ViewOptions } from './view/store-view';
export type { Diagnosis } from './model/store';
export type { SocketLike } from './lib/socket';
