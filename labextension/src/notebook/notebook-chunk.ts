/** Loaded when a notebook with a kernel is first opened: one chunk, since these share much of what they need. */

export { AcceleratorButton } from './accelerator-button';
export { CellCosts } from './cells';
export { addToolbarChip, StatusChip } from './chips';
export { GpuMemoryList } from './gpu-memory-list';
