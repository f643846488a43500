/**
 * Loaded with memory warnings: the forecast notifications, and the explanation below cells that ran
 * out of memory.
 */

export { CellFailures } from './failures';
export { MemoryWatch } from './memory-watch';
