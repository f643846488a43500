/**
 * The code of the notebook features, loaded when a notebook is first opened. It is one chunk,
 * because the features share most of their code.
 */

export { AcceleratorButton } from './accelerator-button';
export { CellLines } from './cell-lines';
export { ChipWidget } from './chips';
export { addCostCommands } from './cost-commands';
export { GpuMemoryList } from './gpu-memory-list';
