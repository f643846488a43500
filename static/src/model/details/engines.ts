/** What the parts of a GPU do, and how fast they run. */

import { duration, mhz, percent } from '../../lib/format';
import { table, trans } from '../../lib/translation';
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
      return max === null ? '' : trans.__('of %1', mhz(max));
    },
  };
}

export const ACTIVITY = table((): DetailGroup => ({
  title: trans.__('Activity'),
  details: [
    activity('graphics_percent', trans.__('Engine active')),
    activity('sm_percent', trans.__('SM active')),
    activity('occupancy_percent', trans.__('Occupancy')),
    activity('tensor_percent', trans.__('Tensor cores')),
    activity('tensor_half_percent', trans.__('Tensor, half')),
    activity('tensor_integer_percent', trans.__('Tensor, integer')),
    activity('tensor_double_percent', trans.__('Tensor, double')),
    activity('fp64_percent', 'FP64'),
    activity('fp32_percent', 'FP32'),
    activity('fp16_percent', 'FP16'),
    activity('integer_percent', trans.__('Integer')),
    activity('dram_bandwidth_percent', trans.__('DRAM bandwidth')),
    utilization('memory_percent', trans.__('Memory busy')),
    utilization('encoder_percent', trans.__('Encoder')),
    utilization('decoder_percent', trans.__('Decoder')),
    utilization('jpeg_percent', 'JPEG'),
    utilization('ofa_percent', trans.__('Optical flow')),
  ],
}));

export const CLOCKS = table((): DetailGroup => ({
  title: trans.__('Clocks'),
  details: [
    clock('graphics_mhz', trans.__('Graphics clock')),
    clock('sm_mhz', trans.__('SM clock')),
    clock('memory_mhz', trans.__('Memory clock')),
    clock('video_mhz', trans.__('Video clock')),
    {
      id: 'application_clocks',
      label: trans.__('Clocks asked for'),
      read: ({ details }) => {
        if (details === null) {
          return null;
        }
        const { graphics_mhz, memory_mhz } = details.application_clocks;
        return together([graphics_mhz, memory_mhz], ([graphics, memory]) =>
          list([graphics == null ? null : mhz(graphics), memory == null ? null : trans.__('memory %1', mhz(memory))]),
        );
      },
    },
    {
      id: 'performance_state',
      label: trans.__('P-state'),
      read: now(
        (gpu) => gpu.performance_state,
        (p) => `P${String(p)}`,
      ),
    },
    {
      id: 'throttled',
      label: trans.__('Held down'),
      read: slow(
        ({ throttled: by }) => heldDown(by),
        (text) => text,
      ),
    },
  ],
}));

const CAUSES = table(
  () =>
    [
      ['power_seconds_total', trans.__('power limit')],
      ['thermal_seconds_total', trans.__('heat')],
      ['board_limit_seconds_total', trans.__('board limit')],
      ['reliability_seconds_total', trans.__('voltage')],
      ['sync_boost_seconds_total', trans.__('sync boost')],
    ] as const,
);

/** For how long each thing has held the clocks down since the driver was loaded; too little to do is no such thing. */
function heldDown(by: Record<ReturnType<typeof CAUSES>[number][0], Reading<number>>): Reading<string> {
  const parts = CAUSES().map(([cause, name]) => told(by[cause], (s) => (s < 1 ? '' : `${name} ${duration(s * 1000)}`)));
  return together(parts, (texts) => list(texts) || trans.__('never'));
}
