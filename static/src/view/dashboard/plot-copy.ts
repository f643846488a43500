/**
 * Copies of a chart as an image or a table for the clipboard, or as a file if the page may not use
 * the clipboard, for example over plain HTTP. The code is loaded when a chart's menu opens.
 */

import type { Chart } from '../../chart/chart';
import type { Surface } from '../../chart/paint';
import { SvgSurface } from '../../chart/svg';
import { formatCsv, quoteCell, downloadBlob } from '../../lib/file-export';
import { joinParts } from '../../lib/text';
import { trans } from '../../lib/translation';
import type { Plot, PlotLine } from '../../model/dashboard/plots';
import { formatSpan } from '../../model/dashboard/readout';
import type { Palette } from '../palette';
import { lineColor, readValues, visibleLines, withValue, type PlotContext } from './plot-content';

interface CsvColumn {
  name: string;
  times_ms: ArrayLike<number>;
  values: ArrayLike<number>;
}

/**
 * Returns CSV with a row for each time from `from_ms` to `to_ms` at which a column has a value.
 * Times are in UTC.
 */
export function csvOf(columns: readonly CsvColumn[], from_ms: number, to_ms: number): string {
  const rows = new Map<number, (number | null)[]>();
  columns.forEach(({ times_ms, values }, column) => {
    for (let i = 0; i < times_ms.length; i += 1) {
      const at_ms = Math.round(times_ms[i] ?? NaN);
      const value = values[i] ?? NaN;
      if (at_ms >= from_ms && at_ms <= to_ms && !Number.isNaN(value)) {
        const row = rows.get(at_ms) ?? Array<number | null>(columns.length).fill(null);
        row[column] = value;
        rows.set(at_ms, row);
      }
    }
  });
  const head = ['time', ...columns.map(({ name }) => quoteCell(name))];
  const body = [...rows]
    .sort(([a], [b]) => a - b)
    .map(([at_ms, row]) => [new Date(at_ms).toISOString(), ...row]);
  return formatCsv([head, ...body]);
}

/**
 * Copies with `copy`, or saves `content` as the file `file` if that fails. Returns a message about
 * the result.
 */
async function copyOrSave(
  copy: () => Promise<void>,
  content: Blob | Promise<Blob>,
  file: string,
): Promise<string> {
  try {
    await copy();
    return trans.__('Copied to the clipboard');
  } catch {
    downloadBlob(await content, file);
    return trans.__('Saved as %1, because this page cannot use the clipboard', file);
  }
}

export type CopyFormat = 'png' | 'svg' | 'csv';

interface Caption {
  title: string;
  subtitle: string;
  entries: readonly { text: string; color: string }[];
}

const PADDING_PX = 12;
const TITLE_PX = 18;
const LINE_PX = 16;
const SWATCH_PX = 8;
const GAP_PX = 12;
/** The scale of images, which are viewed at a larger size than charts. */
const PNG_SCALE = 2;

/** Copies the chart with the values of the `drawn` lines. Returns a message about the result. */
export function copyPlot(
  format: CopyFormat,
  chart: Chart,
  plot: Plot,
  drawn: readonly PlotLine[],
  context: PlotContext,
): Promise<string> {
  const file = `gpumon-${plot.key.replaceAll(/[^\w.]+/g, '-')}.${format}`;
  const copyText = (text: string, type: string): Promise<string> =>
    copyOrSave(() => navigator.clipboard.writeText(text), new Blob([text], { type }), file);
  if (format === 'csv') {
    return copyText(formatPlotAsCsv(plot, context), 'text/csv');
  }
  const caption = captionOf(plot, drawn, context);
  if (format === 'svg') {
    return copyText(makeSvg(chart, caption, context.palette), 'image/svg+xml');
  }
  const picture = makePng(chart, caption, context.palette);
  const copyPicture = (): Promise<void> =>
    navigator.clipboard.write([new ClipboardItem({ 'image/png': picture })]);
  return copyOrSave(copyPicture, picture, file);
}

function captionOf(
  { gpu, title, lines, stack, unit }: Plot,
  drawn: readonly PlotLine[],
  context: PlotContext,
): Caption {
  const entries = visibleLines([...drawn, ...stack], context).map((line) => {
    const { label, name = label, value } = withValue(line, context);
    const text = Number.isNaN(value) ? name : `${name} ${unit.text(value)}`;
    return { text, color: lineColor(line, context.palette) };
  });
  const more = visibleLines(lines, context).filter((line) => !drawn.includes(line)).length;
  const { from_ms, to_ms } = context.window;
  return {
    title: gpu === null ? title : trans.__('GPU %1: %2', gpu, title),
    subtitle: trans.__('%1 to %2', ...formatSpan(from_ms, to_ms, 0)),
    entries:
      more === 0
        ? entries
        : [...entries, { text: trans.__('%1 more', more), color: context.palette.muted }],
  };
}

/**
 * Returns the values of all visible lines as CSV. Each column is in the unit at the end of its
 * field name, such as watts for `power.draw_watts`.
 */
function formatPlotAsCsv({ lines, stack, gpu }: Plot, context: PlotContext): string {
  const { timeline, window } = context;
  const columns = visibleLines([...lines, ...stack], context).flatMap((line) => {
    const { label, name: ownName = label, field } = line;
    const name = joinParts([gpu === null ? null : `GPU ${gpu}`, ownName, field], ' ');
    const { extremes, ...means } = { times_ms: timeline.times_ms, ...readValues(line, context) };
    return [
      { ...means, name },
      ...(extremes == null
        ? []
        : [
            { ...means, name: joinParts([name, 'min'], ' '), values: extremes.low },
            { ...means, name: joinParts([name, 'max'], ' '), values: extremes.high },
          ]),
    ];
  });
  return csvOf(columns, window.from_ms, window.to_ms);
}

function makePng(chart: Chart, caption: Caption, palette: Palette): Promise<Blob> {
  const context = createCanvasContext();
  const { canvas } = context;
  const { width, height, paint } = pictureOf(chart, caption, palette, context);
  const scale = Math.max(1, PNG_SCALE / chart.pixelRatio);
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  context.scale(scale, scale);
  paint(context);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) =>
      blob === null
        ? reject(new Error(trans.__('The browser could not create the image. Reload the page.')))
        : resolve(blob),
    );
  });
}

function makeSvg(chart: Chart, caption: Caption, palette: Palette): string {
  const context = createCanvasContext();
  const { width, height, paint } = pictureOf(chart, caption, palette, context);
  const surface = new SvgSurface(width, height, (text, font) => {
    context.font = font;
    return context.measureText(text);
  });
  paint(surface);
  return surface.text;
}

function createCanvasContext(): CanvasRenderingContext2D {
  const context = document.createElement('canvas').getContext('2d');
  if (context === null) {
    throw new Error(trans.__('The browser could not create a canvas. Reload the page.'));
  }
  return context;
}

/**
 * Returns an image with the title, time and legend above the chart, and its size in the chart's
 * device pixels.
 */
function pictureOf(
  chart: Chart,
  { title, subtitle, entries }: Caption,
  palette: Palette,
  measure: CanvasRenderingContext2D,
) {
  const { pixelRatio, width_px, height_px } = chart;
  const fontOf = (size_px: number): string => `${size_px * pixelRatio}px ${palette.font}`;
  measure.font = fontOf(10);
  let [x, y] = [0, (TITLE_PX + LINE_PX) * pixelRatio];
  const places = entries.map(({ text, color }) => {
    const width = measure.measureText(text).width + (SWATCH_PX + 4) * pixelRatio;
    if (x > 0 && x + width > width_px * pixelRatio) {
      [x, y] = [0, y + LINE_PX * pixelRatio];
    }
    const place = { x, y, text, color };
    x += width + GAP_PX * pixelRatio;
    return place;
  });
  const caption = y + (LINE_PX + 4) * pixelRatio;
  const width = (width_px + 2 * PADDING_PX) * pixelRatio;
  const height = caption + (height_px + 2 * PADDING_PX) * pixelRatio;
  const paint = (surface: Surface): void => {
    const write = (text: string, color: string, left: number, top: number): void => {
      surface.fillStyle = color;
      surface.fillText(text, left, top);
    };
    surface.fillStyle = palette.card;
    surface.fillRect(0, 0, width, height);
    surface.save();
    surface.translate(PADDING_PX * pixelRatio, PADDING_PX * pixelRatio);
    surface.textBaseline = 'top';
    surface.textAlign = 'left';
    surface.font = `bold ${fontOf(13)}`;
    write(title, palette.text, 0, 0);
    surface.font = fontOf(10);
    write(subtitle, palette.muted, 0, TITLE_PX * pixelRatio);
    for (const { color, text, ...place } of places) {
      surface.fillStyle = color;
      surface.fillRect(
        place.x,
        place.y + pixelRatio,
        SWATCH_PX * pixelRatio,
        SWATCH_PX * pixelRatio,
      );
      write(text, palette.text, place.x + (SWATCH_PX + 4) * pixelRatio, place.y);
    }
    surface.translate(0, caption);
    chart.drawOn(surface);
    surface.restore();
  };
  return { width, height, paint };
}
