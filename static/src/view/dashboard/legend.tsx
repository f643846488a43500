import type { ComponentChild } from 'preact';

import { trans } from '../../lib/translation';
import { isolateLine, toggleLine } from '../../model/dashboard/readout';
import type { PlotLine } from '../../model/dashboard/plots';
import type { Unit } from '../../model/unit';
import { makeStripes } from '../palette';
import { PastValue, ReadingValue } from '../value';
import { lineColor, pastValue, type PlotContext } from './plot-content';

export interface LegendProps {
  lines: readonly PlotLine[];
  /** The reasons why the legend lists a line, by line ID. */
  notes?: ReadonlyMap<string, string>;
  /** The IDs of all lines that the legend controls. */
  ids: readonly string[];
  /** The unit of the values. If it is missing, only names are shown. */
  unit?: Unit;
  context: PlotContext;
}

/**
 * A legend with the names of lines and their values at the displayed time. A click isolates or
 * hides a line.
 */
export function Legend({ lines, notes, ids, unit, context }: LegendProps): ComponentChild {
  const { hidden, change, onPoint } = context;
  const choose = (id: string, hides: boolean): void =>
    change((state) => ({
      ...state,
      hidden: (hides ? toggleLine : isolateLine)(state.hidden, id, ids),
    }));
  return (
    <div
      class="gpumon-legend gpumon-readouts"
      role="group"
      title={trans.__('Click to show only this line. Ctrl+click or Shift+click to hide it.')}
    >
      {lines.map((line) => {
        const { id, series } = line;
        const note = notes?.get(id);
        const content = (
          <>
            {note !== undefined && <span class="gpumon-readout-note">{note}</span>}
            <Swatch line={line} context={context} />
            <LegendName text={line.label} />
            {unit && <LineValue line={line} unit={unit} context={context} />}
          </>
        );
        // A computed line such as the median cannot be isolated or hidden, because it summarizes
        // all lines.
        return line.own !== undefined ? (
          <span key={series}>{content}</span>
        ) : (
          <button
            type="button"
            key={series}
            aria-pressed={!hidden.has(id)}
            onClick={(event) => choose(id, isHideClick(event))}
            onKeyDown={(event) => {
              // Some browsers send no click event if the key is pressed with a modifier.
              if ((event.key === 'Enter' || event.key === ' ') && isHideClick(event)) {
                event.preventDefault();
                choose(id, true);
              }
            }}
            onPointerEnter={() => onPoint(id)}
            onPointerLeave={() => onPoint(null)}
          >
            {content}
          </button>
        );
      })}
    </div>
  );
}

export function Swatch({
  line,
  context,
}: {
  line: PlotLine;
  context: PlotContext;
}): ComponentChild {
  const { style, ...stripes } = makeStripes(line.color);
  const color = lineColor(line, context.palette);
  return (
    <span
      class="gpumon-swatch"
      aria-hidden="true"
      {...stripes}
      style={{ ...style, '--_swatch': color }}
    />
  );
}

/**
 * Shows a name. A name that is too long is truncated, but a number at its end, such as a PID, is
 * kept.
 */
export function LegendName({ text }: { text: string }): ComponentChild {
  const number = /(?<=\S)\s\(?\d+\)?$/.exec(text)?.[0] ?? '';
  return (
    <>
      <span class="gpumon-readout-name">{text.slice(0, text.length - number.length)}</span>
      {number !== '' && <span class="gpumon-readout-number">{number}</span>}
    </>
  );
}

function LineValue({
  line,
  unit,
  context,
}: {
  line: PlotLine;
  unit: Unit;
  context: PlotContext;
}): ComponentChild {
  const { at_ms, freshness } = context;
  if (at_ms === null) {
    const stale = freshness.stale || line.isStale === true;
    return (
      <ReadingValue
        id={line.series}
        reading={line.now}
        format={unit.text}
        freshness={{ ...freshness, stale }}
      />
    );
  }
  const past = pastValue(line, at_ms, context);
  return <PastValue id={line.series} text={Number.isNaN(past) ? null : unit.text(past)} />;
}

/** Returns whether a click hides a line instead of isolating it. */
function isHideClick(event: MouseEvent | KeyboardEvent): boolean {
  return event.ctrlKey || event.metaKey || event.shiftKey;
}
