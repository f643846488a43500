/** Before the first test: says what is missing and how to get it. After the last: removes their folders. */

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { chromiumPath, FAKE_NVML, FOLDER_VARIABLE, GPUMON, JUPYTER_LAB } from './machine';

const NEEDED = [
  { file: GPUMON, cure: 'make target/jupyter/.installed' },
  { file: JUPYTER_LAB, cure: 'make target/jupyter/.installed' },
  { file: FAKE_NVML, cure: 'cargo build -p fake-nvml' },
];

export default function setup(): () => void {
  for (const { file, cure } of NEEDED) {
    if (!existsSync(file)) {
      throw new Error(`${file} is missing: run \`${cure}\`, or \`make test-browser\`, which does that first`);
    }
  }
  chromiumPath();
  const folder = mkdtempSync(path.join(tmpdir(), 'gpumon-tests-'));
  process.env[FOLDER_VARIABLE] = folder;
  return () => {
    rmSync(folder, { recursive: true, force: true });
  };
}
