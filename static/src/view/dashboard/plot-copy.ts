/** A chart as a picture or a table for the clipboard; loaded when something is first copied. */

import type { Chart } from '../../chart/chart';
import type { Surface } from '../../chart/surface';
import { SvgSurface } from '../../chart/svg';
import { joined } from '../../lib/text';
import { trans } from '../../lib/translation';
import { csvOf } from '../../model/dashboard/csv';
import { spanText } from '../../model/dashboard/moment';
import type { Plot, PlotLine } from '../../model/dashboard/plots';
import { copyPicture, copyText } from '../clipboard';
import type { Palette } from '../palette';
import { lineColor, recorded, valued, type PlotContext } from './plot-content';

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
/** Pictures are shown larger than charts. */
const PNG_SCALE = 2;

/** Copies what the chart shows, with the values of the `drawn` lines. Returns a message about it. */
export function copyPlot(
  format: CopyFormat,
  chart: Chart,
  plot: Plot,
  drawn: readonly PlotLine[],
  context: PlotContext,
): Promise<string> {
  const file = `gpumon-${plot.key.replaceAll(/[^\w.]+/g, '-')}.${format}`;
  if (format === 'csv') {
    return copyText(tableOf(plot, context), file, 'text/csv');
  }
  const caption = captionOf(plot, drawn, context);
  return format === 'png'
    ? copyPicture(pngOf(chart, caption, context.palette), file)
    : copyText(svgOf(chart, caption, context.palette), file, 'image/svg+xml');
}

function captionOf(
  { gpu, title, lines, stack, unit }: Plot,
  drawn: readonly PlotLine[],
  context: PlotContext,
): Caption {
  const isShown = ({ id }: PlotLine): boolean => !context.hidden.has(id);
  const entries = [...drawn, ...stack].filter(isShown).map((line) => {
    const { label, name = label, value } = valued(line, context);
    const text = Number.isNaN(value) ? name : `${name} ${unit.text(value)}`;
    return { text, color: lineColor(line, context.palette) };
  });
  const more = lines.filter((line) => isShown(line) && !drawn.includes(line)).length;
  const { from_ms, to_ms } = context.window;
  return {
    title: gpu === null ? title : trans.__('GPU %1: %2', gpu, title),
    subtitle: trans.__('%1 to %2', ...spanText(from_ms, to_ms, 0)),
    entries:
      more === 0
        ? entries
        : [...entries, { text: trans.__('%1 more', more), color: context.palette.muted }],
  };
}

/** Returns all lines that are not hidden, in the units of the catalogue, which the names of its fields end with. */
function tableOf({ lines, stack, gpu }: Plot, context: PlotContext): string {
  const { timeline, window, hidden } = context;
  const shown = [...lines, ...stack].filter(({ id }) => !hidden.has(id));
  const columns = shown.flatMap((line) => {
    const { label, name: ownName = label, field } = line;
    const name = joined([gpu === null ? null : `GPU ${gpu}`, ownName, field], ' ');
    const { extremes, ...means } = { times_ms: timeline.times_ms, ...recorded(line, context) };
    return [
      { ...means, name },
      ...(extremes == null
        ? []
        : [
            { ...means, name: joined([name, 'min'], ' '), values: extremes.low },
            { ...means, name: joined([name, 'max'], ' '), values: extremes.high },
          ]),
    ];
  });
  return csvOf(columns, window.from_ms, window.to_ms);
}

function pngOf(chart: Chart, caption: Caption, palette: Palette): Promise<Blob> {
  const context = newContext();
  const { canvas } = context;
  const picture = new Picture(chart, caption, palette, context);
  const scale = Math.max(1, PNG_SCALE / chart.px);
  canvas.width = Math.round(picture.width * scale);
  canvas.height = Math.round(picture.height * scale);
  context.scale(scale, scale);
  picture.paint(context);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) =>
      blob === null
        ? reject(new Error(trans.__('The browser made no picture. Reload the page.')))
        : resolve(blob),
    );
  });
}

function svgOf(chart: Chart, caption: Caption, palette: Palette): string {
  const context = newContext();
  const picture = new Picture(chart, caption, palette, context);
  const surface = new SvgSurface(picture.width, picture.height, (text, font) => {
    context.font = font;
    return context.measureText(text);
  });
  picture.paint(surface);
  return surface.text;
}

function newContext(): CanvasRenderingContext2D {
  const context = document.createElement('canvas').getContext('2d');
  if (context === null) {
    throw new Error(trans.__('The browser has no canvas left. Reload the page.'));
  }
  return context;
}

/** A chart under its title, its time and its legend. Its sizes are pixels of the device, like those of the chart. */
class Picture {
  readonly width: number;
  readonly height: number;
  private readonly places: { x: number; y: number; text: string; color: string }[] = [];
  private readonly captionHeight: number;

  constructor(
    private readonly chart: Chart,
    private readonly caption: Caption,
    private readonly palette: Palette,
    measure: CanvasRenderingContext2D,
  ) {
    const { px, width_px, height_px } = chart;
    const inner = width_px * px;
    measure.font = this.font(10);
    let [x, y] = [0, (TITLE_PX + LINE_PX) * px];
    for (const { text, color } of caption.entries) {
      const width = measure.measureText(text).width + (SWATCH_PX + 4) * px;
      if (x > 0 && x + width > inner) {
        [x, y] = [0, y + LINE_PX * px];
      }
      this.places.push({ x, y, text, color });
      x += width + GAP_PX * px;
    }
    this.captionHeight = y + (LINE_PX + 4) * px;
    this.width = inner + 2 * PADDING_PX * px;
    this.height = this.captionHeight + (height_px + 2 * PADDING_PX) * px;
  }

  paint(surface: Surface): void {
    const { palette, caption, chart } = this;
    const { px } = chart;
    const write = (text: string, color: string, x: number, y: number): void => {
      surface.fillStyle = color;
      surface.fillText(text, x, y);
    };
    surface.fillStyle = palette.card;
    surface.fillRect(0, 0, this.width, this.height);
    surface.save();
    surface.translate(PADDING_PX * px, PADDING_PX * px);
    surface.textBaseline = 'top';
    surface.textAlign = 'left';
    surface.font = `bold ${this.font(13)}`;
    write(caption.title, palette.text, 0, 0);
    surface.font = this.font(10);
    write(caption.subtitle, palette.muted, 0, TITLE_PX * px);
    for (const { x, y, text, color } of this.places) {
      surface.fillStyle = color;
      surface.fillRect(x, y + px, SWATCH_PX * px, SWATCH_PX * px);
      write(text, palette.text, x + (SWATCH_PX + 4) * px, y);
    }
    surface.translate(0, this.captionHeight);
    chart.drawOn(surface);
    surface.restore();
  }

  private font(size_px: number): string {
    return `${size_px * this.chart.px}px ${this.palette.font}`;
  }
}
