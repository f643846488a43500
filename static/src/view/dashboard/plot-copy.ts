/** A chart as a picture or a table for the clipboard; loaded when the menu of a chart is opened. */

import type { Chart } from '../../chart/chart';
import { joined } from '../../lib/text';
import { trans } from '../../lib/translation';
import { csvOf } from '../../model/dashboard/csv';
import { spanText } from '../../model/dashboard/moment';
import { tooltipValues } from '../../model/dashboard/tooltip-values';
import type { Plot, PlotLine } from '../../model/dashboard/plots';
import { copyPicture, copyText } from '../clipboard';
import { colorOf } from '../palette';
import { recorded, shownValue, type PlotContext } from './context';
import { ALL_NAMED } from './legend';
import { pngOf, svgOf, type Caption } from './picture';

export type CopyFormat = 'png' | 'svg' | 'csv';

/** Returns what there is to say about it. The chart shows what `plot` and `context` are. */
export function copyPlot(
  format: CopyFormat,
  chart: Chart,
  plot: Plot,
  context: PlotContext,
): Promise<string> {
  const file = fileOf(plot, format);
  switch (format) {
    case 'png':
      return copyPicture(pngOf(chart, captionOf(plot, context), context.palette), file);
    case 'svg':
      return copyText(
        svgOf(chart, captionOf(plot, context), context.palette),
        file,
        'image/svg+xml',
      );
    case 'csv':
      return copyText(tableOf(plot, context), file, 'text/csv');
  }
}

function fileOf({ key }: Plot, ending: string): string {
  return `gpumon-${key.replaceAll(/[^\w.]+/g, '-')}.${ending}`;
}

function shownLines({ lines, stack }: Plot, { hidden }: PlotContext): PlotLine[] {
  return [...lines, ...stack].filter(({ id }) => !hidden.has(id));
}

/** Of many lines, the highest are named. */
function captionOf(plot: Plot, context: PlotContext): Caption {
  const valued = shownLines(plot, context).map((line) => ({
    ...line,
    value: shownValue(line, context),
  }));
  const { rows, more } =
    valued.length > ALL_NAMED ? tooltipValues(valued, null, ALL_NAMED) : { rows: valued, more: 0 };
  const entries = rows.map(({ label, name = label, color, value }) => ({
    text: Number.isNaN(value) ? name : `${name} ${plot.unit.text(value)}`,
    color: colorOf(context.palette, color),
  }));
  const { from_ms, to_ms } = context.window;
  return {
    title: titleOf(plot),
    subtitle: trans.__('%1 to %2', ...spanText(from_ms, to_ms, 0)),
    entries:
      more === 0
        ? entries
        : [...entries, { text: trans.__('%1 more', more), color: context.palette.muted }],
  };
}

function titleOf({ gpu, title }: Plot): string {
  return gpu === null ? title : trans.__('GPU %1: %2', gpu, title);
}

/** In the units of the catalogue, which the names of its fields tell. */
function tableOf(plot: Plot, context: PlotContext): string {
  const times_ms = context.timeline.times_ms;
  const gpu = plot.gpu === null ? null : `GPU ${plot.gpu}`;
  const columns = shownLines(plot, context).flatMap((line) => {
    const { label, name: ownName = label, field } = line;
    const name = joined([gpu, ownName, field], ' ');
    const { extremes, ...means } = { times_ms, ...recorded(line, context) };
    const { low, high } = extremes ?? {};
    return [
      { ...means, name },
      ...(low === undefined || high === undefined
        ? []
        : [
            { ...means, name: joined([name, 'min'], ' '), values: low },
            { ...means, name: joined([name, 'max'], ' '), values: high },
          ]),
    ];
  });
  return csvOf(columns, context.window.from_ms, context.window.to_ms);
}
