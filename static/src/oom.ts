/** The exports for notes about out-of-memory errors. */

export { parseOomError } from './model/oom-error';
export type { KernelError, OomError } from './model/oom-error';
export { selectSampleWithMoreMemory, describeOom } from './model/describe-oom';
export { OomNote } from './view/oom-note';
export type { Sample } from './wire';
