/** The settings of `schema/plugin.json`. */

import type { ISettingRegistry } from '@jupyterlab/settingregistry';

export interface Settings {
  cellLine: boolean;
  storeCosts: boolean;
  notebookUse: boolean;
  memoryWarnings: boolean;
  alertNotifications: boolean;
  accelerators: boolean;
  /** Seconds between two samples in the panel and in charts. */
  interval: number;
  /** Minutes that charts show at first. */
  spanMinutes: number;
  /** The charts that a dashboard shows at first, by name or id; none for the usual ones. */
  charts: readonly string[];
  memoryUnit: 'GiB' | 'GB';
  temperatureUnit: '°C' | '°F';
  /** A GPU whose memory will be full within so many minutes is worth a warning. */
  warnMinutes: number;
}

/** The defaults of the schema, put here by the build. */
declare const SETTINGS_DEFAULTS: Settings;

/**
 * Hands on the settings, now and whenever they change. Where they cannot be read, the defaults
 * hold.
 */
export async function followSettings(
  registry: ISettingRegistry | null,
  plugin: string,
  apply: (settings: Settings) => void,
): Promise<void> {
  try {
    const settings = await registry?.load(plugin);
    const update = (): void => {
      // The schema has seen to the types, and to the limits.
      apply({ ...SETTINGS_DEFAULTS, ...(settings?.composite as Partial<Settings> | undefined) });
    };
    settings?.changed.connect(update);
    update();
  } catch (error) {
    console.warn('gpumon: its settings cannot be read, so the defaults hold', error);
    apply(SETTINGS_DEFAULTS);
  }
}
