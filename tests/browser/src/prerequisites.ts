/**
 * The global setup: before the first test, it reports missing prerequisites and how to get them.
 * After the last test, it removes the folders of the tests.
 */

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { chromiumPath, FAKE_NVML, FOLDER_VARIABLE, GPUMON, JUPYTER_LAB } from './machine';

export default function setup(): () => void {
  for (const file of [GPUMON, JUPYTER_LAB, FAKE_NVML]) {
    if (!existsSync(file)) {
      throw new Error(`${file} is missing: run \`make test-browser\``);
    }
  }
  chromiumPath();
  const folder = mkdtempSync(path.join(tmpdir(), 'gpumon-tests-'));
  process.env[FOLDER_VARIABLE] = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}
