import type { Feed } from '@gpumon/page/feed';
import { describeFiringAlert, firingAlertKey } from '@gpumon/page/alerts';
import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

/**
 * A notification of severity `notice` closes automatically after this duration. Warnings and
 * critical alerts stay open while the alert fires.
 */
const NOTICE_MS = 10_000;
const TYPES = { critical: 'error', warning: 'warning', notice: 'info' } as const;

/**
 * Shows a notification for each firing alert that is not silenced. The function subscribes to the
 * feed without requesting samples. It returns a function that ends the subscription and removes the
 * notifications.
 */
export function notifyOfAlerts(feed: Feed, trans: TranslationBundle): () => void {
  /**
   * The ID of the notification for each alert. The ID is kept after the user closes the
   * notification, so that the notification does not reappear.
   */
  const shown = new Map<string, string>();
  const update = (): void => {
    const firing = new Map(feed.store.firing.map((alert) => [firingAlertKey(alert), alert]));
    for (const [key, id] of shown) {
      if (!firing.has(key)) {
        Notification.dismiss(id);
        shown.delete(key);
      }
    }
    for (const [key, alert] of firing) {
      if (!shown.has(key) && alert.silenced !== true) {
        const text = describeFiringAlert(alert);
        const message = alert.gpu === null ? text : trans.__('GPU %1: %2', alert.gpu.index, text);
        const type = TYPES[alert.severity];
        const autoClose = type === 'info' ? NOTICE_MS : false;
        shown.set(key, Notification.emit(message, type, { autoClose }));
      }
    }
  };
  const subscription = feed.subscribe((frame) => {
    if (frame?.type === 'hello' || frame?.type === 'alerts') {
      update();
    }
  });
  subscription.update({ active: false });
  update();
  return () => {
    subscription.unsubscribe();
    shown.forEach((id) => Notification.dismiss(id));
  };
}
