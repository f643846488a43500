/** A condition that a test waits for may take longer than vitest's second, on a busy machine. */

import { vi } from 'vitest';

const LONGEST_MS = 60_000;

const waitFor = vi.waitFor.bind(vi);
vi.waitFor = (condition, options = LONGEST_MS) => waitFor(condition, options);
