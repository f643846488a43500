/** What is loaded for the memory of notebooks: the watch over GPUs that run full, and words below cells that failed. */

export { CellFailures } from './failures';
export { MemoryWatch } from './memory-watch';
