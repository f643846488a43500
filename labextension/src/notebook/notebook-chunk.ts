/**
 * The code of the notebook features, loaded when a notebook is first opened. It is one chunk,
 * because the features share most of their code.
 */

export { AcceleratorButton } from './accelerator-button';
export { CellLines } from './cell-costs';
export { ChipWidget, GpuMemoryList } from './gpu-use';
export { addCostCommands } from './stored-costs';
