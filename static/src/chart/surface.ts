/**
 * What a chart is drawn upon: a canvas, or a picture of lines and letters as `svg.ts` makes one.
 */
export type Surface = Pick<
  CanvasRenderingContext2D,
  | 'fillStyle'
  | 'strokeStyle'
  | 'globalAlpha'
  | 'lineWidth'
  | 'lineJoin'
  | 'lineCap'
  | 'setLineDash'
  | 'font'
  | 'textAlign'
  | 'textBaseline'
  | 'measureText'
  | 'fillText'
  | 'fillRect'
  | 'beginPath'
  | 'moveTo'
  | 'lineTo'
  | 'closePath'
  | 'rect'
  | 'arc'
  | 'stroke'
  | 'clip'
  | 'save'
  | 'restore'
  | 'translate'
> & { fill: (rule?: CanvasFillRule) => void };
