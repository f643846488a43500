/** The paths of the programs and folders that the tests need. */

import { accessSync, constants, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** The root folder of the repository. */
export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** The virtual environment with JupyterLab and the wheel. */
export const VENV = process.env.GPUMON_TEST_JUPYTER ?? path.join(ROOT, 'target/jupyter');
/** The program that the wheel installed. */
export const GPUMON = path.join(VENV, 'bin/gpumon');
export const JUPYTER_LAB = path.join(VENV, 'bin/jupyter-lab');
export const PYTHON = path.join(VENV, 'bin/python');
/** The `deno` program, which is used as a kernel for a language other than Python. */
export const DENO = path.join(VENV, 'bin/deno');
/** A fake NVML library with simulated GPUs. */
export const FAKE_NVML =
  process.env.GPUMON_TEST_FAKE_NVML ?? path.join(ROOT, 'target/debug/libfake_nvml.so');
/** The folder for screenshots of failed tests. */
export const FAILURES = path.join(ROOT, 'target/browser');

/**
 * The name of the environment variable with the folder in which test workers create their folders.
 */
export const FOLDER_VARIABLE = 'GPUMON_TEST_FOLDER';

/** The usual names of Chromium. `tools/need.py` has the same list. */
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

/** Creates a folder for a server or scenario. It is removed after the last test. */
export function newFolder(): string {
  return mkdtempSync(path.join(process.env[FOLDER_VARIABLE] ?? tmpdir(), 'gpumon-'));
}

/**
 * Returns the environment of this process, extended by `more`. Variables that would select another
 * GPU source or another server's settings are left out.
 */
export function makeEnvironment(more: Record<string, string>): Record<string, string> {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(GPUMON_|JUPYTER|JPY_|VITEST|NODE_ENV)/.test(name),
  );
  return { ...Object.fromEntries(kept.map(([name, value]) => [name, value ?? ''])), ...more };
}

/** Creates a file with a scenario for the fake library or the simulation. */
export function newScenario(text: string): string {
  const file = path.join(newFolder(), 'scenario.toml');
  writeFileSync(file, text);
  return file;
}

/** Returns the environment variables that make gpumon read a scenario through the fake library. */
export function makeFakeEnvironment(scenario: string): Record<string, string> {
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
