/** What charts need for more of the past than the stream tells. */

export { Past } from '../../model/history/past';
export { Comparison } from './comparison';
export { PastNote } from './past-note';
