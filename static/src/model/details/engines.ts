/** What the parts of a GPU do, and how fast they run. */

import { duration, mhz, percent } from '../../lib/format';
import type { Activity, Reading } from '../../wire';
import type { GpuView } from '../gpu';
import { absenceOf, valueOf } from '../reading';
import { list, now, slow, together, told, type Detail, type DetailGroup } from './detail';

/** A part of the activity, which is absent as a whole where the hardware does not count it. */
export function active(activity: Reading<Activity>, part: keyof Activity): Reading<number> {
  return valueOf(activity)?.[part] ?? absenceOf(activity) ?? { absent: 'unknown' };
}

function activity(part: keyof Activity, label: string): Detail {
  return { id: `activity.${part}`, label, read: now((gpu) => active(gpu.activity, part), percent) };
}

function utilization(part: keyof NonNullable<GpuView['now']>['utilization'], label: string): Detail {
  return { id: `utilization.${part}`, label, read: now((gpu) => gpu.utilization[part], percent) };
}

function clock(part: 'graphics_mhz' | 'sm_mhz' | 'memory_mhz' | 'video_mhz', label: string): Detail {
  return {
    id: `clocks.${part}`,
    label,
    read: now((gpu) => gpu.clocks[part], mhz),
    rest: ({ board }) => {
      const max = valueOf(board.max_clocks[part]);
      return max === null ? '' : `of ${mhz(max)}`;
    },
  };
}

export const ACTIVITY: DetailGroup = {
  title: 'Activity',
  details: [
    activity('graphics_percent', 'Engine active'),
    activity('sm_percent', 'SM active'),
    activity('occupancy_percent', 'Occupancy'),
    activity('tensor_percent', 'Tensor cores'),
    activity('tensor_half_percent', 'Tensor, half'),
    activity('tensor_integer_percent', 'Tensor, integer'),
    activity('tensor_double_percent', 'Tensor, double'),
    activity('fp64_percent', 'FP64'),
    activity('fp32_percent', 'FP32'),
    activity('fp16_percent', 'FP16'),
    activity('integer_percent', 'Integer'),
    activity('dram_bandwidth_percent', 'DRAM bandwidth'),
    utilization('memory_percent', 'Memory busy'),
    utilization('encoder_percent', 'Encoder'),
    utilization('decoder_percent', 'Decoder'),
    utilization('jpeg_percent', 'JPEG'),
    utilization('ofa_percent', 'Optical flow'),
  ],
};

export const CLOCKS: DetailGroup = {
  title: 'Clocks',
  details: [
    clock('graphics_mhz', 'Graphics clock'),
    clock('sm_mhz', 'SM clock'),
    clock('memory_mhz', 'Memory clock'),
    clock('video_mhz', 'Video clock'),
    {
      id: 'application_clocks',
      label: 'Clocks asked for',
      read: ({ details }) => {
        if (details === null) {
          return null;
        }
        const { graphics_mhz, memory_mhz } = details.application_clocks;
        return together([graphics_mhz, memory_mhz], ([graphics, memory]) =>
          list([graphics == null ? null : mhz(graphics), memory == null ? null : `memory ${mhz(memory)}`]),
        );
      },
    },
    {
      id: 'performance_state',
      label: 'P-state',
      read: now(
        (gpu) => gpu.performance_state,
        (p) => `P${String(p)}`,
      ),
    },
    {
      id: 'throttled',
      label: 'Held down',
      read: slow(
        ({ throttled: by }) => heldDown(by),
        (text) => text,
      ),
    },
  ],
};

const CAUSES = [
  ['power_seconds_total', 'power limit'],
  ['thermal_seconds_total', 'heat'],
  ['board_limit_seconds_total', 'board limit'],
  ['reliability_seconds_total', 'voltage'],
  ['sync_boost_seconds_total', 'sync boost'],
] as const;

/** For how long each thing has held the clocks down since the driver was loaded; too little to do is no such thing. */
function heldDown(by: Record<(typeof CAUSES)[number][0], Reading<number>>): Reading<string> {
  const parts = CAUSES.map(([cause, name]) => told(by[cause], (s) => (s < 1 ? '' : `${name} ${duration(s * 1000)}`)));
  return together(parts, (texts) => list(texts) || 'never');
}
