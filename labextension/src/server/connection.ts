import type { Feed } from '@gpumon/page/feed';
import type { ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { Settings } from '../settings';
import type { LauncherMarks } from './launcher-entry';

/**
 * The single connection of this JupyterLab to gpumon's server. It is created when a view, a
 * notebook or alert rules first need it.
 */
export class Connection {
  private made: Promise<Feed> | null = null;
  private known: Feed | null = null;
  private chosen: Settings | null = null;
  private endNotifications: (() => void) | null = null;
  private marks: Promise<LauncherMarks> | null = null;

  constructor(
    private readonly settings: ServerConnection.ISettings,
    private readonly trans: TranslationBundle,
    /** JupyterLab's language, such as `pt-BR`. */
    private readonly language: string,
  ) {}

  /** Whether the server has a fleet; `null` until the server has answered. */
  get hasFleet(): boolean | null {
    return this.known?.store.version == null ? null : this.known.store.hasFleet;
  }

  feed(): Promise<Feed> {
    return (this.made ??= this.createFeed());
  }

  async apply(settings: Settings): Promise<void> {
    this.chosen = settings;
    if (this.made !== null) {
      await this.applySettingsTo(await this.made);
    } else if (settings.alertNotifications) {
      void this.connectForAlerts();
    }
  }

  /** Returns whether the server will show a fleet. This does not connect to the server. */
  async willHaveFleet(): Promise<boolean> {
    return (await this.readMarks()).fleet;
  }

  private readMarks(): Promise<LauncherMarks> {
    return (this.marks ??= import('./launcher-entry').then(({ readMarks }) =>
      readMarks(this.settings),
    ));
  }

  private async connectForAlerts(): Promise<void> {
    const { alerts } = await this.readMarks();
    if (alerts && this.chosen?.alertNotifications === true) {
      await this.feed();
    }
  }

  private async createFeed(): Promise<Feed> {
    const { settings, trans, language } = this;
    const { loadXids, createFeedAndSetLanguage } = await import('./stream');
    const feed = createFeedAndSetLanguage(settings, trans, language);
    this.known = feed;
    if (!language.startsWith('en')) {
      await loadXids().catch((error: unknown) =>
        console.error('gpumon: the texts of Xids cannot be loaded', error),
      );
    }
    await this.applySettingsTo(feed);
    return feed;
  }

  private async applySettingsTo(feed: Feed): Promise<void> {
    if (this.chosen !== null) {
      const { memoryUnit, temperatureUnit, warnMinutes } = this.chosen;
      const { chooseUnits } = await import('@gpumon/page/feed');
      chooseUnits({ memory: memoryUnit, temperature: temperatureUnit });
      feed.store.memoryHorizon_ms = warnMinutes * 60_000;
      // The caller need not wait for the notifications.
      void this.updateAlertNotifications(feed);
    }
  }

  private async updateAlertNotifications(feed: Feed): Promise<void> {
    const isWanted = (): boolean => this.chosen?.alertNotifications === true;
    if (!isWanted()) {
      this.endNotifications?.();
      this.endNotifications = null;
      return;
    }
    const { notifyOfAlerts } = await import('../alert-notifications');
    // The setting may have changed meanwhile.
    if (isWanted()) {
      this.endNotifications ??= notifyOfAlerts(feed, this.trans);
    }
  }
}
