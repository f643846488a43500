/** A chart with its title, its time and its legend, as a picture. */

import type { Chart } from '../../chart/chart';
import type { Surface } from '../../chart/surface';
import { SvgSurface } from '../../chart/svg';
import { trans } from '../../lib/translation';
import type { Palette } from '../palette';

export interface Caption {
  title: string;
  /** When it was, and where. */
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

export function pngOf(chart: Chart, caption: Caption, palette: Palette): Promise<Blob> {
  const { canvas, context } = newCanvas();
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

export function svgOf(chart: Chart, caption: Caption, palette: Palette): string {
  const { context } = newCanvas();
  const picture = new Picture(chart, caption, palette, context);
  const surface = new SvgSurface(picture.width, picture.height, (text, font) => {
    context.font = font;
    return context.measureText(text);
  });
  picture.paint(surface);
  return surface.text;
}

function newCanvas(): { canvas: HTMLCanvasElement; context: CanvasRenderingContext2D } {
  const canvas = document.createElement('canvas');
  const context = canvas.getContext('2d');
  if (context === null) {
    throw new Error(trans.__('The browser has no canvas left. Reload the page.'));
  }
  return { canvas, context };
}

/** Laid out in pixels of the device, as the chart is. */
class Picture {
  readonly width: number;
  readonly height: number;
  private readonly px: number;
  private readonly places: { x: number; y: number; text: string; color: string }[] = [];
  private readonly captionHeight: number;

  constructor(
    private readonly chart: Chart,
    private readonly caption: Caption,
    private readonly palette: Palette,
    measure: CanvasRenderingContext2D,
  ) {
    const { px } = chart;
    this.px = px;
    const inner = chart.width_px * px;
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
    this.height = this.captionHeight + chart.height_px * px + 2 * PADDING_PX * px;
  }

  paint(surface: Surface): void {
    const { px, palette, caption } = this;
    surface.fillStyle = palette.card;
    surface.fillRect(0, 0, this.width, this.height);
    surface.save();
    surface.translate(PADDING_PX * px, PADDING_PX * px);
    surface.textBaseline = 'top';
    surface.textAlign = 'left';
    surface.font = `bold ${this.font(13)}`;
    surface.fillStyle = palette.text;
    surface.fillText(caption.title, 0, 0);
    surface.font = this.font(10);
    surface.fillStyle = palette.muted;
    surface.fillText(caption.subtitle, 0, TITLE_PX * px);
    for (const { x, y, text, color } of this.places) {
      surface.fillStyle = color;
      surface.fillRect(x, y + px, SWATCH_PX * px, SWATCH_PX * px);
      surface.fillStyle = palette.text;
      surface.fillText(text, x + (SWATCH_PX + 4) * px, y);
    }
    surface.translate(0, this.captionHeight);
    this.chart.drawOn(surface);
    surface.restore();
  }

  private font(size_px: number): string {
    return `${size_px * this.px}px ${this.palette.font}`;
  }
}
