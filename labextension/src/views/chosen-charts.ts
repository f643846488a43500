/** The charts that somebody chose in the settings, by names; loaded where somebody did, or opens charts. */

import { chartCalled, nearestChart } from '@gpumon/page/charts';
import { setTranslator } from '@gpumon/page/feed';
import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';

/** Their ids; names of none are left out. */
export function chosenCharts(names: readonly string[], trans: TranslationBundle): string[] {
  setTranslator(trans);
  return [...new Set(names.flatMap((name) => chartCalled(name) ?? []))];
}

export function warnOfUnknown(names: readonly string[], trans: TranslationBundle): void {
  setTranslator(trans);
  for (const name of names.filter((one) => chartCalled(one) === null)) {
    const message = trans.__(
      'GPU Monitor: the setting "Charts" has "%1", which is no chart. Did you mean "%2"? Change it in the Settings Editor.',
      name,
      nearestChart(name),
    );
    Notification.warning(message, { autoClose: false });
  }
}
