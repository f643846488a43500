/** The settings of `schema/plugin.json`. */

import type { ISettingRegistry } from '@jupyterlab/settingregistry';

export interface Settings {
  /** Whether cells have a line that says what they took of the GPUs. */
  cellLine: boolean;
}

const DEFAULTS: Settings = { cellLine: true };

/** Hands on the settings, now and whenever they change. Where they cannot be read, the defaults hold. */
export async function followSettings(
  registry: ISettingRegistry | null,
  plugin: string,
  apply: (settings: Settings) => void,
): Promise<void> {
  try {
    const settings = await registry?.load(plugin);
    const tell = (): void => {
      const cellLine = settings?.composite.cellLine;
      apply({ cellLine: typeof cellLine === 'boolean' ? cellLine : DEFAULTS.cellLine });
    };
    settings?.changed.connect(tell);
    tell();
  } catch (error) {
    console.warn('gpumon: its settings cannot be read, so the defaults hold', error);
    apply(DEFAULTS);
  }
}
