/** Notifications of the alerts of people's own rules. */

import type { Feed, Subscription } from '@gpumon/page/feed';
import { describeFiring, firingKey } from '@gpumon/page/firing-alert';
import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';

/** The wire's type, which only the page's sources name. */
type FiringAlert = Feed['store']['firing'][number];

/** A notice goes away by itself. */
const NOTICE_MS = 10_000;

/**
 * One notification for each alert that fires and is not silenced, as long as it does. It asks for no samples.
 */
export class AlertNotifications implements IDisposable {
  isDisposed = false;
  /** The ids of notifications, by alert. One that was closed stays known, and does not come again. */
  private readonly shown = new Map<string, string>();
  private readonly subscription: Subscription;

  constructor(
    private readonly feed: Feed,
    private readonly trans: TranslationBundle,
  ) {
    this.subscription = feed.subscribe((frame) => {
      if (frame?.type === 'hello' || frame?.type === 'alerts') {
        this.update();
      }
    });
    this.subscription.update({ active: false });
    this.update();
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.isDisposed = true;
    this.subscription.unsubscribe();
    this.shown.forEach((id) => Notification.dismiss(id));
  }

  private update(): void {
    const firing = new Map(this.feed.store.firing.map((alert) => [firingKey(alert), alert]));
    for (const [key, id] of this.shown) {
      if (!firing.has(key)) {
        Notification.dismiss(id);
        this.shown.delete(key);
      }
    }
    for (const [key, alert] of firing) {
      if (!this.shown.has(key) && alert.silenced !== true) {
        this.shown.set(key, this.notify(alert));
      }
    }
  }

  private notify(alert: FiringAlert): string {
    const { gpu, severity } = alert;
    const text = describeFiring(alert);
    const type = severity === 'critical' ? 'error' : severity === 'warning' ? 'warning' : 'info';
    return Notification.emit(
      gpu === null ? text : this.trans.__('GPU %1: %2', gpu.index, text),
      type,
      {
        autoClose: type === 'info' ? NOTICE_MS : false,
      },
    );
  }
}
