/** The details of a GPU's engines and clocks. */

import { duration, mhz, percent } from '../../lib/format';
import { table, trans } from '../../lib/translation';
import { joined } from '../../lib/text';
import type { Reading } from '../../wire';
import { GPU_FIELDS } from '../../wire/fields';
import {
  field,
  formatReading,
  outOf,
  slow,
  together,
  type Detail,
  type DetailGroup,
} from './detail';

function clock(part: 'graphics_mhz' | 'sm_mhz' | 'memory_mhz' | 'video_mhz'): Detail {
  return {
    ...field(`clocks.${part}`, mhz),
    rest: ({ board }) => outOf(board.max_clocks[part], mhz),
  };
}

/** All utilization shares of the catalog, except the one that the GPU's card already shows. */
export const ACTIVITY = table((): DetailGroup => {
  const shares = [/^activity\./, /^utilization\.(?!gpu_)/].flatMap((ids) =>
    GPU_FIELDS.filter(({ id }) => ids.test(id)),
  );
  return { title: trans.__('Activity'), details: shares.map(({ id }) => field(id, percent)) };
});

export const CLOCKS = table((): DetailGroup => ({
  title: trans.__('Clocks'),
  details: [
    clock('graphics_mhz'),
    clock('sm_mhz'),
    clock('memory_mhz'),
    clock('video_mhz'),
    {
      id: 'application_clocks',
      label: trans.__('Application clocks'),
      read: ({ details }) => {
        if (details === null) {
          return null;
        }
        const { graphics_mhz, memory_mhz } = details.application_clocks;
        return together([graphics_mhz, memory_mhz], ([graphics, memory]) =>
          joined([
            graphics == null ? null : mhz(graphics),
            memory == null ? null : trans.__('memory %1', mhz(memory)),
          ]),
        );
      },
    },
    { ...field('performance_state', (p) => `P${p}`), label: trans.__('P-state') },
    slow('throttled', trans.__('Throttled'), ({ throttled }) => heldDown(throttled), String),
  ],
}));

const CAUSES = table(
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
 * Returns how long each cause has reduced the clocks since the driver was loaded. Idling is not a
 * cause.
 */
function heldDown(
  by: Record<ReturnType<typeof CAUSES>[number][0], Reading<number>>,
): Reading<string> {
  const parts = CAUSES().map(([cause, name]) =>
    formatReading(by[cause], (s) => (s < 1 ? '' : `${name} ${duration(s * 1000)}`)),
  );
  return together(parts, (texts) => joined(texts) || trans.__('never'));
}
