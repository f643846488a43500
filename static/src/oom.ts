/** What others may use to say that GPU memory has run out. */

export { oomErrorOf } from './model/oom-error';
export type { KernelError, OomError } from './model/oom-error';
export { fullerSample, describeOom } from './model/describe-oom';
export { OomNote } from './view/oom-note';
export type { Sample } from './wire';
