/** On a busy machine, a condition may take longer than vitest's default of one second. */

import { vi } from 'vitest';

const LONGEST_MS = 60_000;

const waitFor = vi.waitFor.bind(vi);
vi.waitFor = (condition, options = LONGEST_MS) => waitFor(condition, options);
