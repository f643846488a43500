import type { ComponentChild } from 'preact';

import { trans } from '../lib/translation';

export interface ShowAllButtonProps {
  count: number;
  /** The number of rows until all are asked for. */
  short: number;
  isWhole: boolean;
  onChange: (isWhole: boolean) => void;
}

/** The button below a list that shows all rows of it, or fewer. */
export function ShowAllButton({
  count,
  short,
  isWhole,
  onChange,
}: ShowAllButtonProps): ComponentChild {
  return (
    count > short && (
      <button
        type="button"
        class="gpumon-chip"
        aria-expanded={isWhole}
        onClick={() => onChange(!isWhole)}
      >
        {isWhole ? trans.__('Show fewer') : trans.__('Show all %1', count)}
      </button>
    )
  );
}
