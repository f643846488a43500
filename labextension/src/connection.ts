/** The one connection of this JupyterLab to gpumon's server, made when something first needs it. */

import type { Feed } from '@gpumon/page/feed';
import type { ServerConnection } from '@jupyterlab/services';

import { diagnose, openStream } from './stream';

export class Connection {
  private made: Promise<Feed> | null = null;

  constructor(private readonly settings: ServerConnection.ISettings) {}

  /** The feed that everything shares. */
  feed(): Promise<Feed> {
    this.made ??= import('@gpumon/page/feed').then(
      ({ Feed }) => new Feed({ openSocket: () => openStream(this.settings), diagnose: () => diagnose(this.settings) }),
    );
    return this.made;
  }
}
