/** A drawing surface that produces an SVG image. */

import type { Surface } from './paint';

const NAMESPACE = 'http://www.w3.org/2000/svg';
const ANCHORS: Partial<Record<CanvasTextAlign, string>> = { center: 'middle', right: 'end' };
const BASELINES: Partial<Record<CanvasTextBaseline, string>> = {
  middle: 'central',
  top: 'hanging',
};

type Attributes = Record<string, string | number>;

export class SvgSurface implements Surface {
  fillStyle: string | CanvasGradient | CanvasPattern = '#000';
  strokeStyle: string | CanvasGradient | CanvasPattern = '#000';
  globalAlpha = 1;
  lineWidth = 1;
  lineJoin: CanvasLineJoin = 'miter';
  lineCap: CanvasLineCap = 'butt';
  font = '';
  textAlign: CanvasTextAlign = 'left';
  textBaseline: CanvasTextBaseline = 'alphabetic';
  private readonly root: SVGElement;
  private dash: readonly number[] = [];
  private path: string[] = [];
  private clips = 0;
  /** The open groups. New elements are added to the innermost group. */
  private groups: SVGElement[];
  /** One number for each `save` call: how many groups were open at that moment. */
  private readonly saved: number[] = [];

  /** `measure` returns the width of a text in a font, which only a canvas can measure. */
  constructor(
    width: number,
    height: number,
    private readonly measure: (text: string, font: string) => TextMetrics,
  ) {
    this.root = createElement('svg', { width, height, viewBox: `0 0 ${width} ${height}` });
    this.groups = [this.root];
  }

  /** The content of the SVG file. */
  get text(): string {
    return new XMLSerializer().serializeToString(this.root);
  }

  setLineDash(lengths: Iterable<number>): void {
    this.dash = [...lengths];
  }

  measureText(text: string): TextMetrics {
    return this.measure(text, this.font);
  }

  fillText(text: string, x: number, y: number): void {
    const [size = '10px', ...family] = this.font.replace(/^(?:bold|\d+) (?=\d)/, '').split(' ');
    const node = this.appendElement('text', {
      x,
      y,
      fill: toPlainColor(this.fillStyle),
      'font-size': size,
      'font-family': family.join(' '),
      'font-weight': this.font.startsWith('bold') ? 'bold' : 'normal',
      'text-anchor': ANCHORS[this.textAlign] ?? 'start',
      'dominant-baseline': BASELINES[this.textBaseline] ?? 'auto',
    });
    node.textContent = text;
  }

  fillRect(x: number, y: number, width: number, height: number): void {
    this.appendElement('rect', { x, y, width, height, fill: toPlainColor(this.fillStyle) });
  }

  beginPath(): void {
    this.path = [];
  }

  moveTo(x: number, y: number): void {
    this.path.push(`M${roundCoordinate(x)} ${roundCoordinate(y)}`);
  }

  lineTo(x: number, y: number): void {
    this.path.push(`L${roundCoordinate(x)} ${roundCoordinate(y)}`);
  }

  closePath(): void {
    this.path.push('Z');
  }

  rect(x: number, y: number, width: number, height: number): void {
    this.path.push(
      `M${roundCoordinate(x)} ${roundCoordinate(y)}h${roundCoordinate(width)}v${roundCoordinate(height)}h${roundCoordinate(-width)}Z`,
    );
  }

  /** Adds a whole circle. Angles are ignored. */
  arc(x: number, y: number, radius: number): void {
    const r = roundCoordinate(radius);
    this.path.push(
      `M${roundCoordinate(x - radius)} ${roundCoordinate(y)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`,
    );
  }

  stroke(): void {
    this.appendElement('path', {
      d: this.path.join(''),
      fill: 'none',
      stroke: toPlainColor(this.strokeStyle),
      'stroke-width': this.lineWidth,
      'stroke-linejoin': this.lineJoin,
      'stroke-linecap': this.lineCap,
      ...(this.dash.length > 0 && { 'stroke-dasharray': this.dash.join(' ') }),
    });
  }

  fill(rule: CanvasFillRule = 'nonzero'): void {
    this.appendElement('path', {
      d: this.path.join(''),
      fill: toPlainColor(this.fillStyle),
      'fill-rule': rule,
    });
  }

  clip(): void {
    this.clips += 1;
    const id = `clip${this.clips}`;
    const clip = this.appendElement('clipPath', { id });
    clip.append(createElement('path', { d: this.path.join('') }));
    this.openGroup({ 'clip-path': `url(#${id})` });
  }

  translate(x: number, y: number): void {
    this.openGroup({ transform: `translate(${x} ${y})` });
  }

  save(): void {
    this.saved.push(this.groups.length);
  }

  /**
   * Ends the clips and translations that were started after the last `save` call. Other state is
   * not restored.
   */
  restore(): void {
    this.groups = this.groups.slice(0, this.saved.pop() ?? 1);
  }

  private openGroup(attributes: Attributes): void {
    this.groups.push(this.appendElement('g', attributes));
  }

  private appendElement(name: string, attributes: Attributes): SVGElement {
    const made = createElement(
      name,
      this.globalAlpha < 1 ? { ...attributes, opacity: this.globalAlpha } : attributes,
    );
    this.groups.at(-1)?.append(made);
    return made;
  }
}

function createElement(name: string, attributes: Attributes): SVGElement {
  const made = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, String(value));
  }
  return made;
}

/** Returns a plain color. Charts use no gradients or patterns. */
function toPlainColor(style: string | CanvasGradient | CanvasPattern): string {
  return typeof style === 'string' ? style : 'none';
}

/** Rounds to a hundredth of a pixel, which is enough for an image. */
function roundCoordinate(value: number): number {
  return Math.round(value * 100) / 100;
}
