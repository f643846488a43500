/** The details of the causes that limit a GPU. */

import { formatPercent } from '../../lib/format';
import { joinParts, joinSentences } from '../../lib/text';
import { trans } from '../../lib/translation';
import type { LimitClass, OwnerLimits, Process } from '../../wire';
import { describeProcesses } from '../alerts';
import type { GpuState } from '../gpu';
import { notebookNamesOf, processName } from '../holders';
import {
  describeLimitShares,
  explainLimit,
  isMainCauseClear,
  limitLabel,
  listLimitShares,
} from '../limits';
import { valueOf } from '../reading';
import { formatReading, type DetailGroup } from './detail';

/**
 * Returns the causes that limit a GPU, the largest first, with the evidence and the advice. If the
 * readings hardly distinguish the causes, evidence and advice are omitted. If several owners use
 * the GPU, a paragraph describes what limits each of them.
 */
export function limitGroup({ now }: GpuState): DetailGroup {
  const title = trans.__('Limited by');
  const reading = now?.limits ?? { absent: 'not_supported' };
  const limits = valueOf(reading);
  if (limits === null) {
    const read = (): ReturnType<typeof formatReading> => formatReading(reading, () => '');
    return { title, details: now === null ? [] : [{ id: 'limits', label: title, read }] };
  }
  const { main, confidence, owners = [] } = limits;
  const { evidence, advice } = explainLimit(main, limits.evidence);
  const processes = valueOf(now?.processes) ?? [];
  const notes = [
    confidence === 'low' ? '' : joinParts([evidence, advice], ' '),
    ...owners.map((owner) => describeOwnerLimits(owner, processes, main)),
  ];
  return {
    title,
    details: listLimitShares(limits).map(({ cause, percent }) => ({
      id: `limits.${cause}_percent`,
      label: limitLabel(cause) ?? cause,
      read: () => formatReading(reading, () => formatPercent(percent)),
    })),
    notes: notes.filter((note) => note !== ''),
  };
}

/**
 * Describes what limits an owner, as in `train.py (PID 4711): shared 50 %, tensor-bound 38 %.`,
 * with the evidence and the advice. If these are about the main cause of the GPU, they are omitted.
 */
function describeOwnerLimits(
  { pids, limits: { shares, evidence } }: OwnerLimits,
  processes: readonly Process[],
  gpuCause: LimitClass,
): string {
  const names = notebookNamesOf(processes);
  const nameOf = (pid: number): string => {
    const unknown = trans.__('PID %1', pid);
    const process = processes.find((one) => one.pid === pid);
    const name = process === undefined ? unknown : processName(process, names);
    return name === unknown ? unknown : trans.__('%1 (PID %2)', name, pid);
  };
  const causes = trans.__('%1: %2', describeProcesses(pids, nameOf), describeLimitShares(shares));
  const [main] = shares;
  const reasons =
    main !== undefined && main.cause !== gpuCause && isMainCauseClear(shares)
      ? explainLimit(main.cause, evidence)
      : null;
  return joinSentences([causes, reasons?.evidence ?? '', reasons?.advice ?? '']);
}
