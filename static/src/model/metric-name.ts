/** What metrics are called. */

import { trans } from '../lib/translation';

/** Looked up when it is shown. */
export type Name = () => string;

export const NAMES = {
  utilization: () => trans.__('Utilization'),
  memory: () => trans.__('Memory'),
  inUse: () => trans.__('In use'),
  power: () => trans.__('Power'),
  average: () => trans.__('Average'),
  instant: () => trans.__('Instant'),
  temperature: () => trans.__('Temperature'),
  gpu: () => 'GPU',
  sm: () => 'SM',
  tensor: () => trans.__('Tensor cores'),
  bandwidth: () => trans.__('Memory bandwidth'),
  occupancy: () => trans.__('Occupancy'),
  fp64: () => 'FP64',
  fp32: () => 'FP32',
  fp16: () => 'FP16',
  integer: () => trans.__('Integer'),
  controller: () => trans.__('Memory controller'),
  encoder: () => trans.__('Encoder'),
  decoder: () => trans.__('Decoder'),
  jpeg: () => 'JPEG',
  flow: () => trans.__('Optical flow'),
  video: () => trans.__('Video'),
  received: () => trans.__('Received'),
  sent: () => trans.__('Sent'),
  fan: () => trans.__('Fan'),
  cpu: () => trans.__('CPU'),
  ram: () => trans.__('RAM'),
  swap: () => trans.__('Swap'),
  read: () => trans.__('Read'),
  written: () => trans.__('Written'),
} satisfies Record<string, Name>;
