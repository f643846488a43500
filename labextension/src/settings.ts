/** The settings of `schema/plugin.json`. */

import type { ISettingRegistry } from '@jupyterlab/settingregistry';

export interface Settings {
  /** Whether cells have a line that says what they took of the GPUs. */
  cellLine: boolean;
  /** Whether notebooks say in their toolbar, and in the status bar, what they have of the GPUs now. */
  notebookUse: boolean;
  /** Whether it is told that GPU memory runs out, and below a cell that has failed for it, who holds it. */
  memoryWarnings: boolean;
}

const DEFAULTS: Settings = { cellLine: true, notebookUse: true, memoryWarnings: true };

/** Hands on the settings, now and whenever they change. Where they cannot be read, the defaults hold. */
export async function followSettings(
  registry: ISettingRegistry | null,
  plugin: string,
  apply: (settings: Settings) => void,
): Promise<void> {
  try {
    const settings = await registry?.load(plugin);
    const tell = (): void => {
      const chosen = (name: keyof Settings): boolean => {
        const value = settings?.composite[name];
        return typeof value === 'boolean' ? value : DEFAULTS[name];
      };
      apply({
        cellLine: chosen('cellLine'),
        notebookUse: chosen('notebookUse'),
        memoryWarnings: chosen('memoryWarnings'),
      });
    };
    settings?.changed.connect(tell);
    tell();
  } catch (error) {
    console.warn('gpumon: its settings cannot be read, so the defaults hold', error);
    apply(DEFAULTS);
  }
}
