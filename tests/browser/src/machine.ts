/** Where on this machine the things are that the tests need. */

import { accessSync, constants, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** The root of the checkout. */
export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** The virtual environment with JupyterLab and the wheel. */
export const VENV = process.env.GPUMON_TEST_JUPYTER ?? path.join(ROOT, 'target/jupyter');
/** The program, as the wheel installed it. */
export const GPUMON = path.join(VENV, 'bin/gpumon');
export const JUPYTER_LAB = path.join(VENV, 'bin/jupyter-lab');
export const PYTHON = path.join(VENV, 'bin/python');
/** A kernel that is not Python. */
export const DENO = path.join(VENV, 'bin/deno');
/** NVML's interface over simulated GPUs. */
export const FAKE_NVML =
  process.env.GPUMON_TEST_FAKE_NVML ?? path.join(ROOT, 'target/debug/libfake_nvml.so');
/** Where pictures of failed tests go. */
export const FAILURES = path.join(ROOT, 'target/browser');

/** The environment variable by which test workers are told where their folders go. */
export const FOLDER_VARIABLE = 'GPUMON_TEST_FOLDER';

/** `tools/need.py` looks for the same names. */
const CHROMIUMS = [
  'chromium-headless-shell',
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
];
const FIREFOXES = ['firefox-esr', 'firefox'];

/** Returns `$CHROMIUM`, or the first of the usual names in `$PATH`. */
export function chromiumPath(): string {
  return (
    process.env.CHROMIUM ?? findProgram(CHROMIUMS, 'Chromium is missing: run `make test-browser`')
  );
}

/** Returns `$FIREFOX`, or the first of the usual names in `$PATH`. */
export function firefoxPath(): string {
  return (
    process.env.FIREFOX ?? findProgram(FIREFOXES, 'Firefox is missing: run `make test-firefox`')
  );
}

function findProgram(names: readonly string[], advice: string): string {
  const folders = (process.env.PATH ?? '').split(path.delimiter);
  const files = names.flatMap((name) => folders.map((folder) => path.join(folder, name)));
  const found = files.find(isProgram);
  if (found === undefined) {
    throw new Error(advice);
  }
  return found;
}

/** A new folder, for one server or scenario; it is gone after the last test. */
export function newFolder(): string {
  return mkdtempSync(path.join(process.env[FOLDER_VARIABLE] ?? tmpdir(), 'gpumon-'));
}

/**
 * This process's environment without what would choose another source or another server's settings,
 * and `more`.
 */
export function environment(more: Record<string, string>): Record<string, string> {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(GPUMON_|JUPYTER|JPY_|VITEST|NODE_ENV)/.test(name),
  );
  return { ...Object.fromEntries(kept.map(([name, value]) => [name, value ?? ''])), ...more };
}

/** A new file with this scenario for the fake library. */
export function newScenario(text: string): string {
  const file = path.join(newFolder(), 'scenario.toml');
  writeFileSync(file, text);
  return file;
}

/** The environment in which gpumon sees what this scenario of the fake library tells. */
export function overFake(scenario: string): Record<string, string> {
  return { GPUMON_SOURCE: 'nvml', GPUMON_NVML_LIB: FAKE_NVML, GPUMON_FAKE_NVML_SCENARIO: scenario };
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
