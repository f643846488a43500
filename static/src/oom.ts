/** What others may use to say how GPU memory runs out, and that it has. */

export type { NameOf } from './model/holder-name';
export { MemoryWarnings } from './model/memory-warning';
export type { MemoryWarning } from './model/memory-warning';
export { oomErrorOf } from './model/oom-error';
export type { KernelError, OomError } from './model/oom-error';
export { fullerSample, describeOom } from './model/describe-oom';
export { OomNote } from './view/oom-note';
export type { Sample } from './wire';
