/** The one connection of this JupyterLab to gpumon's server, made when something first needs it. */

import type { Feed } from '@gpumon/page/feed';
import type { ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { Settings } from '../settings';

export class Connection {
  private made: Promise<Feed> | null = null;
  private chosen: Settings | null = null;

  constructor(
    private readonly settings: ServerConnection.ISettings,
    private readonly trans: TranslationBundle,
  ) {}

  feed(): Promise<Feed> {
    this.made ??= this.make();
    return this.made;
  }

  async apply(settings: Settings): Promise<void> {
    this.chosen = settings;
    if (this.made !== null) {
      await applySettings(settings, await this.made);
    }
  }

  private async make(): Promise<Feed> {
    const { settings, trans } = this;
    const { loadXids, newFeed } = await import('./stream');
    const feed = newFeed(settings, trans);
    // A bundle does not say which language it is in.
    if (trans.__('Memory') !== 'Memory') {
      await loadXids().catch((error: unknown) => console.error('gpumon: the texts of Xids cannot be loaded', error));
    }
    if (this.chosen !== null) {
      await applySettings(this.chosen, feed);
    }
    return feed;
  }
}

async function applySettings({ memoryUnit, temperatureUnit, warnMinutes }: Settings, { store }: Feed): Promise<void> {
  const { chooseUnits } = await import('@gpumon/page/feed');
  chooseUnits({ memory: memoryUnit, temperature: temperatureUnit });
  store.memoryHorizon_ms = warnMinutes * 60_000;
}
