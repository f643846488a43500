/**
 * The code of the memory warnings, loaded when they are enabled: forecast notifications, and
 * explanations below cells that ran out of memory.
 */

export { CellFailures } from './failures';
export { MemoryWatch } from './memory-watch';
