/** The four numbers of a GPU that have a line over time. */

import { celsius, gib, gibNumber, percent, watts, wattsNumber } from '../lib/format';
import type { GpuSample, Reading } from '../wire';

/** The parts of a value: the number, and what it is out of. */
export interface Formatted {
  main: string;
  rest: string;
}

export interface Metric {
  /** Its name in history frames: the path in a GPU's sample. */
  id: string;
  /** What its colour is called: `--gpumon-<colour>`. */
  colour: 'utilization' | 'memory' | 'power' | 'temperature';
  label: string;
  read: (gpu: GpuSample) => Reading<number>;
  /** What the value is out of, in the same unit; `null` where that is not read but known, as 100 %. */
  limit: ((gpu: GpuSample) => Reading<number>) | null;
  /** The lower end of its axis. */
  floor: number;
  /** The upper end where no limit is known. */
  ceiling: number;
  format: (value: number | null, limit: number | null) => Formatted;
  /** A value on its axis. */
  tick: (value: number) => string;
}

const none = '–';

export const METRICS: readonly Metric[] = [
  {
    id: 'utilization.gpu_percent',
    colour: 'utilization',
    label: 'Utilization',
    read: (gpu) => gpu.utilization.gpu_percent,
    limit: null,
    floor: 0,
    ceiling: 100,
    format: (value) => ({ main: value === null ? none : percent(value), rest: '' }),
    tick: (value) => percent(value),
  },
  {
    id: 'memory.used_bytes',
    colour: 'memory',
    label: 'Memory',
    read: (gpu) => gpu.memory.used_bytes,
    limit: (gpu) => gpu.memory.total_bytes,
    floor: 0,
    ceiling: 1024 ** 3,
    format: (value, limit) =>
      limit === null
        ? { main: value === null ? none : gib(value), rest: '' }
        : { main: value === null ? none : gibNumber(value), rest: `/ ${gib(limit)}` },
    tick: (value) => gib(value),
  },
  {
    id: 'power.draw_watts',
    colour: 'power',
    label: 'Power',
    read: (gpu) => gpu.power.draw_watts,
    limit: (gpu) => gpu.power.limit_watts,
    floor: 0,
    ceiling: 100,
    format: (value, limit) =>
      limit === null
        ? { main: value === null ? none : watts(value), rest: '' }
        : { main: value === null ? none : wattsNumber(value), rest: `/ ${watts(limit)}` },
    tick: (value) => watts(value),
  },
  {
    id: 'temperature.gpu_celsius',
    colour: 'temperature',
    label: 'Temperature',
    read: (gpu) => gpu.temperature.gpu_celsius,
    limit: null,
    floor: 20,
    ceiling: 100,
    format: (value) => ({ main: value === null ? none : celsius(value), rest: '' }),
    tick: (value) => celsius(value),
  },
];
