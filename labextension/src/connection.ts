/** The one connection of this JupyterLab to gpumon's server, made when something first needs it. */

import type { Feed } from '@gpumon/page/feed';
import type { ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';

export class Connection {
  private made: Promise<Feed> | null = null;

  constructor(
    private readonly settings: ServerConnection.ISettings,
    private readonly trans: TranslationBundle,
  ) {}

  /** The feed that everything shares. */
  feed(): Promise<Feed> {
    const { settings, trans } = this;
    this.made ??= Promise.all([import('@gpumon/page/feed'), import('./stream')]).then(
      ([{ Feed }, { diagnose, judge, openStream }]) =>
        new Feed({
          openSocket: () => openStream(settings),
          diagnose: () => diagnose(settings, trans),
          judge: (version) => judge(version, trans),
        }),
    );
    return this.made;
  }
}
