/** The charts that users select by name or ID in the settings. */

import { findChartId, nearestChartName } from '@gpumon/page/charts';
import { setTranslator } from '@gpumon/page/feed';
import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

/** Returns the IDs of the named charts. Unknown names are omitted. */
export function findChartIds(names: readonly string[], trans: TranslationBundle): string[] {
  setTranslator(trans);
  return [...new Set(names.flatMap((name) => findChartId(name) ?? []))];
}

/** Shows a notification for each name in the settings that is not the name of a chart. */
export function warnAboutUnknownCharts(names: readonly string[], trans: TranslationBundle): void {
  setTranslator(trans);
  for (const name of names.filter((one) => findChartId(one) === null)) {
    const message = trans.__(
      'No chart is named "%1". Did you mean "%2"? Change the setting "Charts" of GPU Monitor.',
      name,
      nearestChartName(name),
    );
    Notification.warning(message, { autoClose: false });
  }
}
