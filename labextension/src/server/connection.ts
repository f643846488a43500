/**
 * The one connection of this JupyterLab to gpumon's server, made when something first needs it: a view, a notebook, or
 * alert rules.
 */

import type { Feed } from '@gpumon/page/feed';
import type { IDisposable } from '@lumino/disposable';
import type { ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { Settings } from '../settings';
import type { LauncherMarks } from './launcher-entry';

export class Connection {
  private made: Promise<Feed> | null = null;
  private known: Feed | null = null;
  private chosen: Settings | null = null;
  private notifications: IDisposable | null = null;
  private marks: Promise<LauncherMarks> | null = null;

  constructor(
    private readonly settings: ServerConnection.ISettings,
    private readonly trans: TranslationBundle,
    /** JupyterLab's language, such as `pt-BR`. */
    private readonly language: string,
  ) {}

  /** Whether the server tells of a fleet; `null` until it has said so. */
  get hasFleet(): boolean | null {
    return this.known?.store.version == null ? null : this.known.store.hasFleet;
  }

  feed(): Promise<Feed> {
    this.made ??= this.make();
    return this.made;
  }

  async apply(settings: Settings): Promise<void> {
    this.chosen = settings;
    if (this.made !== null) {
      const feed = await this.made;
      await applySettings(settings, feed);
      await this.applyNotifications(feed);
    } else if (settings.alertNotifications) {
      // What waits for the settings need not wait for this.
      void this.connectForAlerts();
    }
  }

  /** Returns whether the server will show a fleet, without a connection. */
  async willHaveFleet(): Promise<boolean> {
    return (await this.launcherMarks()).fleet;
  }

  private launcherMarks(): Promise<LauncherMarks> {
    this.marks ??= import('./launcher-entry').then(({ readMarks }) => readMarks(this.settings));
    return this.marks;
  }

  private async connectForAlerts(): Promise<void> {
    const { alerts } = await this.launcherMarks();
    if (alerts && this.chosen?.alertNotifications === true) {
      await this.feed();
    }
  }

  private async make(): Promise<Feed> {
    const { settings, trans, language } = this;
    const { loadXids, newFeed } = await import('./stream');
    const feed = newFeed(settings, trans, language);
    this.known = feed;
    if (!language.startsWith('en')) {
      await loadXids().catch((error: unknown) =>
        console.error('gpumon: the texts of Xids cannot be loaded', error),
      );
    }
    if (this.chosen !== null) {
      await applySettings(this.chosen, feed);
      // What waits for the feed need not wait for this.
      void this.applyNotifications(feed);
    }
    return feed;
  }

  private async applyNotifications(feed: Feed): Promise<void> {
    const wanted = (): boolean => this.chosen?.alertNotifications === true;
    if (!wanted()) {
      this.notifications?.dispose();
      this.notifications = null;
    } else if (this.notifications === null) {
      const { AlertNotifications } = await import('../alert-notifications');
      // It may have been switched off meanwhile, or another call was first.
      if (wanted()) {
        this.notifications ??= new AlertNotifications(feed, this.trans);
      }
    }
  }
}

async function applySettings(
  { memoryUnit, temperatureUnit, warnMinutes }: Settings,
  { store }: Feed,
): Promise<void> {
  const { chooseUnits } = await import('@gpumon/page/feed');
  chooseUnits({ memory: memoryUnit, temperature: temperatureUnit });
  store.memoryHorizon_ms = warnMinutes * 60_000;
}
