/** The details of the causes that limit a GPU. */

import { formatPercent } from '../../lib/format';
import { joinParts } from '../../lib/text';
import { trans } from '../../lib/translation';
import type { GpuState } from '../gpu';
import { explainLimit, limitLabel, listLimitShares } from '../limits';
import { valueOf } from '../reading';
import { formatReading, type DetailGroup } from './detail';

/** Returns the causes that limit a GPU, the largest first, with the evidence and the advice. */
export function limitGroup({ now }: GpuState): DetailGroup {
  const title = trans.__('Limited by');
  const reading = now?.limits ?? { absent: 'not_supported' };
  const limits = valueOf(reading);
  if (limits === null) {
    const read = (): ReturnType<typeof formatReading> => formatReading(reading, () => '');
    return { title, details: now === null ? [] : [{ id: 'limits', label: title, read }] };
  }
  const { evidence, advice } = explainLimit(limits.main, limits.evidence);
  return {
    title,
    details: listLimitShares(limits).map(({ cause, percent }) => ({
      id: `limits.${cause}_percent`,
      label: limitLabel(cause) ?? cause,
      read: () => formatReading(reading, () => formatPercent(percent)),
    })),
    note: joinParts([evidence, advice], ' '),
  };
}
