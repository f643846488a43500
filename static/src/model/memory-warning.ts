/**
 * Warnings that a GPU's memory is running out, for GPUs that notebooks use. A warning lasts from
 * the forecast until the problem is solved.
 */

import { formatMemoryAmount } from '../lib/format';
import { shortenName } from '../lib/text';
import { trans } from '../lib/translation';
import { describeCondition } from './alerts';
import { gpusOf, type GpuState } from './gpu';
import {
  holderBytes,
  holderName,
  notebookKernelId,
  holderRows,
  type HolderRow,
  type PathOf,
} from './holders';
import { ColorSlots } from './color-slots';
import { restOfSystemBytes, restOfSystemLabel, describeForecast, forecastOf } from './memory';
import type { Store } from './store';

export interface MemoryWarning {
  gpu: number;
  /** The forecast and, on a second line, the holders. It fits into a notification. */
  text: string;
  urgent: boolean;
  /**
   * The kernel to which the warning's actions apply. It belongs to the notebook on this Jupyter
   * server whose memory grows fastest, or to the largest notebook if none grows.
   */
  kernelId: string;
}

/** The maximum number of characters of a notification. JupyterLab would truncate a longer text. */
const MAX_LENGTH = 140;
const MAX_NAME_LENGTH = 24;

/** The current warnings, updated with each new sample of the store. */
export class MemoryWarnings {
  private readonly slots = new ColorSlots();
  private readonly warnings = new Map<number, MemoryWarning>();

  /** Updates and returns the warnings, at most one per GPU. */
  update(store: Store, pathOf: PathOf): MemoryWarning[] {
    const gpus = gpusOf(store.inventory, store.sample);
    const rows = holderRows(gpus, this.slots, pathOf).filter((row) => row.kind === 'holder');
    for (const gpu of gpus) {
      const here = rows.filter((row) => row.gpu === gpu.index);
      const warning = this.warningOf(gpu, here, store, this.warnings.has(gpu.index));
      if (warning === null) {
        this.warnings.delete(gpu.index);
      } else {
        this.warnings.set(gpu.index, warning);
      }
    }
    return [...this.warnings.values()];
  }

  /**
   * Returns the current warning of a GPU, or `null`. A forecast starts a warning. Without a
   * forecast, memory that is nearly full continues an existing warning (`lasts`), but does not
   * start one.
   */
  private warningOf(
    gpu: GpuState,
    rows: readonly HolderRow[],
    store: Store,
    lasts: boolean,
  ): MemoryWarning | null {
    const forecast = forecastOf(gpu, rows, store.memoryHorizon_ms);
    const full = gpu.now?.conditions.find(({ condition }) => condition === 'memory_nearly_full');
    if (forecast === null && (full === undefined || !lasts)) {
      return null;
    }
    const growers = forecast?.growers ?? [];
    const own = [...growers.map(({ row }) => row), ...rows].find(
      (row) => notebookKernelId(row) !== null,
    );
    const kernelId = own?.notebook?.kernel_id;
    if (kernelId === undefined) {
      return null;
    }
    const brief = (row: HolderRow): string => shortenName(holderName(row), MAX_NAME_LENGTH);
    const foreseen = forecast === null ? null : describeForecast(forecast, brief);
    const matter = foreseen?.text ?? (full === undefined ? '' : describeCondition(full, []));
    const holders = [
      ...rows.map((row) => [brief(row), holderBytes(row)] as const),
      [restOfSystemLabel(), (gpu.now && restOfSystemBytes(gpu.now)) ?? 0] as const,
    ];
    const text = appendHolders(
      trans.__('GPU %1: %2', gpu.index, matter),
      holders
        .filter(([, bytes]) => bytes > 0)
        .map(([name, bytes]) => `${name} ${formatMemoryAmount(bytes)}`),
    );
    return { gpu: gpu.index, text, urgent: foreseen?.level !== 'warning', kernelId };
  }
}

/** Adds a second line with as many of the largest holders as fit. */
function appendHolders(head: string, holders: readonly string[]): string {
  let text = head;
  for (const i of holders.keys()) {
    const longer = `${head}\n${trans.__('Held by %1', holders.slice(0, i + 1).join(', '))}`;
    if (longer.length > MAX_LENGTH) {
      break;
    }
    text = longer;
  }
  return text;
}
