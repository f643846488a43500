/** Alerts of user-defined rules in the form in which they are shown. */

import { formatDuration, formatTimeWithDateUnlessToday } from '../lib/format';
import { joinParts, plainText } from '../lib/text';
import { trans } from '../lib/translation';
import type { FiringAlert } from '../wire';
import { severityLevel, type Alert } from './condition';

/** Returns the alerts of a GPU, or of the machine if `gpu` is `null`. */
export function firingAlerts(
  firing: readonly FiringAlert[],
  gpu: number | null,
  now_ms: number,
): Alert[] {
  return firing
    .filter((alert) => (alert.gpu?.index ?? null) === gpu)
    .map((alert) => ({
      key: firingKey(alert),
      text: describeFiringAlert(alert),
      short: plainText(alert.rule),
      title: joinParts(
        [describeSince(alert, now_ms), alert.silenced === true ? trans.__('silenced') : ''],
        '\n',
      ),
      level: severityLevel(alert.severity),
    }));
}

/** Returns text such as `hot: Temperature 87 °C, above 85 °C for 2 min`. */
export function describeFiringAlert({ rule, text }: Pick<FiringAlert, 'rule' | 'text'>): string {
  return plainText(trans.__('%1: %2', rule, text));
}

/** Returns a key that does not change while the alert fires. */
export function firingKey({ rule, gpu, since_ms }: FiringAlert): string {
  return `alert ${gpu?.index ?? ''} ${since_ms} ${rule}`;
}

function describeSince({ since_ms }: FiringAlert, now_ms: number): string {
  return trans.__(
    'since %1, for %2',
    formatTimeWithDateUnlessToday(since_ms, now_ms),
    formatDuration(now_ms - since_ms),
  );
}
