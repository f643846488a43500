/** The script that JupyterLab loads at its start. It is a plain script; everything behind it is modules. */

import { makeContainer } from './container';

/** The build says what is taken from JupyterLab, and where the plugin is. */
declare const PACKAGES: Record<string, string>;
declare const PLUGIN: string;

const page = globalThis as { _JUPYTERLAB?: Record<string, unknown> };
(page._JUPYTERLAB ??= {}).gpumon = makeContainer(
  PACKAGES,
  // An address without a host belongs to that of this script, whatever is in front of it.
  () => import(/* @vite-ignore */ PLUGIN) as Promise<{ default: unknown }>,
);
