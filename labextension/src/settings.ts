/** The settings that `schema/plugin.json` defines. */

import type { ISettingRegistry } from '@jupyterlab/settingregistry';

export interface Settings {
  cellLine: boolean;
  storeCosts: boolean;
  notebookUse: boolean;
  memoryWarnings: boolean;
  alertNotifications: boolean;
  accelerators: boolean;
  /** The seconds between two samples in the panel and in charts. */
  interval: number;
  /** The time range that charts show at first, in minutes. */
  spanMinutes: number;
  /**
   * The names or IDs of the charts that a dashboard shows at first. If the list is empty, it shows
   * the default charts.
   */
  charts: readonly string[];
  memoryUnit: 'GiB' | 'GB';
  temperatureUnit: '°C' | '°F';
  /**
   * A warning is shown if a GPU's memory is expected to be full within this many
   * minutes.
   */
  warnMinutes: number;
}

/** The defaults of the schema, which the build inserts. */
declare const SETTINGS_DEFAULTS: Settings;

/**
 * Calls `apply` with the settings immediately and after each change. If the settings cannot be
 * read, the defaults are used.
 */
export async function applySettingsOnChange(
  registry: ISettingRegistry | null,
  plugin: string,
  apply: (settings: Settings) => void,
): Promise<void> {
  try {
    const settings = await registry?.load(plugin);
    const update = (): void => {
      // JupyterLab has validated the types and limits against the schema.
      apply({ ...SETTINGS_DEFAULTS, ...(settings?.composite as Partial<Settings> | undefined) });
    };
    settings?.changed.connect(update);
    update();
  } catch (error) {
    console.warn('gpumon: its settings cannot be read, so the defaults hold', error);
    apply(SETTINGS_DEFAULTS);
  }
}
