/**
 * What each file of tests starts with: fresh modules, an empty page, and time for a busy machine.
 */

import { vi } from 'vitest';

// One process runs all files: with one for each, they take four times as long.
vi.resetModules();
if (typeof document !== 'undefined') {
  document.head.replaceChildren();
  document.body.replaceChildren();
  localStorage.clear();
  sessionStorage.clear();
  history.replaceState(null, '', '/');
}

const LONGEST_MS = 60_000;

// The default is one second.
const waitFor = vi.waitFor.bind(vi);
vi.waitFor = (condition, options = LONGEST_MS) => waitFor(condition, options);
