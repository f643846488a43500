/**
 * The setup of each test file: fresh modules, an empty page, and long timeouts for a busy machine.
 */

import { vi } from 'vitest';

// One process runs all files, because one process per file takes four times as long. Therefore
// modules are reset between files.
vi.resetModules();
if (typeof document !== 'undefined') {
  document.head.replaceChildren();
  document.body.replaceChildren();
  localStorage.clear();
  sessionStorage.clear();
  history.replaceState(null, '', '/');
}

const LONGEST_MS = 60_000;

// The default timeout of `vi.waitFor` is one second.
const waitFor = vi.waitFor.bind(vi);
vi.waitFor = (condition, options = LONGEST_MS) => waitFor(condition, options);
