/** The details of a GPU's engines and clocks. */

import { formatDuration, formatMegahertz, formatPercent } from '../../lib/format';
import { lazyTexts, trans } from '../../lib/translation';
import { joinParts } from '../../lib/text';
import type { Reading } from '../../wire';
import { GPU_FIELDS } from '../../wire/fields';
import {
  fieldDetail,
  formatReading,
  describeMaximum,
  timestampedDetail,
  combineReadings,
  type Detail,
  type DetailGroup,
} from './detail';

function clockDetail(part: 'graphics_mhz' | 'sm_mhz' | 'memory_mhz' | 'video_mhz'): Detail {
  return {
    ...fieldDetail(`clocks.${part}`, formatMegahertz),
    rest: ({ board }) => describeMaximum(board.max_clocks[part], formatMegahertz),
  };
}

/**
 * All utilization percentages of the catalog, except the utilization that is already on the GPU's
 * card.
 */
export const ACTIVITY = lazyTexts((): DetailGroup => {
  const shares = [/^activity\./, /^utilization\.(?!gpu_)/].flatMap((ids) =>
    GPU_FIELDS.filter(({ id }) => ids.test(id)),
  );
  return {
    title: trans.__('Activity'),
    details: shares.map(({ id }) => fieldDetail(id, formatPercent)),
  };
});

export const CLOCKS = lazyTexts((): DetailGroup => ({
  title: trans.__('Clocks'),
  details: [
    clockDetail('graphics_mhz'),
    clockDetail('sm_mhz'),
    clockDetail('memory_mhz'),
    clockDetail('video_mhz'),
    {
      id: 'application_clocks',
      label: trans.__('Application clocks'),
      read: ({ details }) => {
        if (details === null) {
          return null;
        }
        const { graphics_mhz, memory_mhz } = details.application_clocks;
        return combineReadings([graphics_mhz, memory_mhz], ([graphics, memory]) =>
          joinParts([
            graphics == null ? null : formatMegahertz(graphics),
            memory == null ? null : trans.__('memory %1', formatMegahertz(memory)),
          ]),
        );
      },
    },
    { ...fieldDetail('performance_state', (p) => `P${p}`), label: trans.__('P-state') },
    timestampedDetail(
      'throttled',
      trans.__('Throttled'),
      ({ throttled }) => describeThrottlingTimes(throttled),
      String,
    ),
  ],
}));

const CAUSES = lazyTexts(
  () =>
    [
      ['power_seconds_total', trans.__('power limit')],
      ['thermal_seconds_total', trans.__('thermal')],
      ['board_limit_seconds_total', trans.__('board limit')],
      ['reliability_seconds_total', trans.__('voltage')],
      ['sync_boost_seconds_total', trans.__('sync boost')],
    ] as const,
);

/**
 * Returns how long each cause has reduced the clocks since the driver was loaded. Clocks that are
 * reduced because the GPU is idle are not counted.
 */
function describeThrottlingTimes(
  by: Record<ReturnType<typeof CAUSES>[number][0], Reading<number>>,
): Reading<string> {
  const parts = CAUSES().map(([cause, name]) =>
    formatReading(by[cause], (s) => (s < 1 ? '' : `${name} ${formatDuration(s * 1000)}`)),
  );
  return combineReadings(parts, (texts) => joinParts(texts) || trans.__('never'));
}
