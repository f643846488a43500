/** Loaded when a notebook is first opened: one chunk, since these share much of what they need. */

export { AcceleratorButton } from './accelerator-button';
export { CellLines } from './cell-lines';
export { ChipWidget } from './chips';
export { addCostCommands } from './cost-commands';
export { GpuMemoryList } from './gpu-memory-list';
