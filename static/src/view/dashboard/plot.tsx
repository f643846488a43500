import { useRef, useState } from 'preact/hooks';

import type { Chart } from '../../chart/chart';
import { trans } from '../../lib/translation';
import {
  moveChart,
  moveChartByStep,
  keepValidCharts,
  HEIGHTS_PX,
  moveBy,
  resume,
  withAxisRange,
  withHeight,
  zoomTo,
  zoomBy,
  type DashboardState,
} from '../../model/dashboard/state';
import { LineCrowd, MAX_SINGLE_LINES } from '../../model/dashboard/crowd';
import { ExtremeLines, nearestLineId } from '../../model/dashboard/readout';
import type { Plot, PlotLine } from '../../model/dashboard/plots';
import { ChartCanvas } from '../chart-canvas';
import { useViewParts, useThrottledRender } from '../component-view';
import { Menu } from '../menu';
import { loadPart } from '../part';
import type { Annotations } from './annotations';
import { addGestures, type GestureListener } from './gestures';
import type { CopyFormat } from './plot-copy';
import {
  makeChartContent,
  visibleLayers,
  visibleLines,
  withValue,
  type ChangeState,
  type PlotContext,
} from './plot-content';
import { Legend, Tooltip, type Pointer } from './readout';

/**
 * The media type of dragged charts. A chart does not accept anything else, such as a file or a
 * cell.
 */
const CHART_MEDIA_TYPE = 'application/x-gpumon-chart';
/** The maximum distance of the pointer from a line that is highlighted. */
const MAX_NEAR_PX = 12;
/** The change of the chart height per key press. */
const STEP_PX = 20;

interface PlotProps {
  plot: Plot;
  context: PlotContext;
  annotations: Annotations;
  /** The charts of the dashboard in order. */
  charts: readonly string[];
  /**
   * Whether this is the first chart. All charts have the same height, so only the first chart's
   * height handle can be focused.
   */
  isFirst: boolean;
}

/** A chart of the dashboard with its title, legend and menu. */
export function PlotView({ plot, context: given, annotations, charts, isFirst }: PlotProps) {
  const { cursor, invalidate } = useViewParts();
  const figure = useRef<HTMLElement>(null);
  const chart = useRef<Chart | null>(null);
  const pointer = useRef<Pointer | null>(null);
  const [{ crowd, extremes }] = useState(() => ({
    crowd: new LineCrowd(),
    extremes: new ExtremeLines(),
  }));
  const [drop, setDrop] = useState<'before' | 'after' | null>(null);
  const { change } = given;
  const context = updateWindowTimes(given);
  const { at_ms } = cursor;

  const onMount = (host: HTMLElement, made: Chart): void => {
    chart.current = made;
    addGestures(host, made, gesturesOf(plot, change));
    host.addEventListener('pointermove', ({ clientY }) => {
      const { left, top } = host.getBoundingClientRect();
      const { right: viewRight = 0 } = host.closest('.gpumon')?.getBoundingClientRect() ?? {};
      pointer.current = { clientY, left, top, viewRight };
      invalidate();
    });
    host.addEventListener('pointerleave', () => {
      pointer.current = null;
      invalidate();
    });
  };
  /** Returns the ID of the line at the pointer. */
  const pointedLine = (): string | null => {
    const at = pointer.current && chart.current?.valueAt(pointer.current.clientY);
    return at && plot.lines.length > 1
      ? nearestLineId(
          visibleLines(plot.lines, context).map((line) => withValue(line, context)),
          at.value,
          MAX_NEAR_PX * at.pixel,
        )
      : null;
  };
  const linesWith = (near: string | null): readonly PlotLine[] =>
    plot.lines.length > MAX_SINGLE_LINES
      ? crowd.selectLines(plot, context.timeline, context.window, context.hidden, [
          near,
          context.pointed,
        ])
      : plot.lines;
  const copy = async (format: CopyFormat): Promise<string> => {
    const { copyPlot } = await loadPart(importPlotCopy());
    const now = updateWindowTimes(given);
    const lines = linesWith(null);
    // The chart is drawn again before it is copied, so that all values of the copy are from the
    // same time.
    chart.current?.draw(makeChartContent(plot, lines, annotations, now, at_ms, null));
    return chart.current === null ? '' : copyPlot(format, chart.current, plot, lines, now);
  };
  const arrange = (all: readonly string[]): null => {
    change((state) => ({ ...state, charts: keepValidCharts(all) }));
    return null;
  };

  const content = useThrottledRender(figure, context.freshness.now_ms, (onScreen) => {
    const near = pointedLine();
    const lines = linesWith(near);
    const drawn = onScreen
      ? makeChartContent(plot, lines, annotations, context, at_ms, near)
      : null;
    const range = drawn === null ? 0 : drawn.ceiling - drawn.floor;
    const layers = visibleLayers(plot, context);
    const notes = new Map<string, string>();
    const shown = visibleLines(plot.lines, context);
    if (shown.some((line) => !lines.includes(line))) {
      const values = shown.map((line) => withValue(line, context));
      const [highest, lowest] = extremes.findIds(values, range);
      notes.set(lowest ?? '', trans.__('min')).set(highest ?? '', trans.__('max'));
    }
    return (
      <>
        <figcaption>
          <div class="gpumon-plot-head">
            <h3
              title={trans.__('Drag to arrange charts')}
              draggable
              onDragStart={({ dataTransfer }) => {
                dataTransfer?.setData(CHART_MEDIA_TYPE, plot.chart);
                dataTransfer?.setDragImage(figure.current ?? new Image(), 20, 20);
              }}
            >
              {plot.title}
            </h3>
            <PlotMenu
              actions={{
                [trans.__('Copy as PNG')]: () => copy('png'),
                [trans.__('Copy as SVG')]: () => copy('svg'),
                [trans.__('Copy as CSV')]: () => copy('csv'),
                [trans.__('Move left')]: () => arrange(moveChartByStep(charts, plot.chart, -1)),
                [trans.__('Move right')]: () => arrange(moveChartByStep(charts, plot.chart, 1)),
                [trans.__('Remove chart')]: () => arrange(charts.filter((id) => id !== plot.chart)),
              }}
            />
          </div>
          <Legend
            lines={[...new Set([...lines, ...shown.filter(({ id }) => notes.has(id))]), ...layers]}
            notes={notes}
            ids={[...plot.lines, ...plot.stack].map(({ id }) => id)}
            unit={plot.unit}
            context={context}
          />
        </figcaption>
        <div>
          <ChartCanvas class="gpumon-chart gpumon-plot-chart" content={drawn} onMount={onMount}>
            <Tooltip
              plot={plot}
              lines={lines}
              layers={layers}
              near={near}
              chart={chart.current}
              pointer={pointer.current}
              at_ms={at_ms}
              annotations={annotations}
              context={context}
            />
          </ChartCanvas>
          <HeightHandle height_px={context.height_px} isFirst={isFirst} change={change} />
        </div>
      </>
    );
  });
  return (
    <figure
      class="gpumon-plot"
      data-plot={plot.key}
      data-drop={drop ?? undefined}
      ref={figure}
      onDragOver={(event) => {
        if (event.dataTransfer?.types.includes(CHART_MEDIA_TYPE) === true) {
          event.preventDefault();
          setDrop(dropSide(event));
        }
      }}
      onDragLeave={({ currentTarget, relatedTarget }) => {
        if (!(relatedTarget instanceof Node && currentTarget.contains(relatedTarget))) {
          setDrop(null);
        }
      }}
      onDrop={(event) => {
        setDrop(null);
        const dragged = event.dataTransfer?.getData(CHART_MEDIA_TYPE) ?? '';
        if (dragged !== '') {
          event.preventDefault();
          arrange(moveChart(charts, dragged, plot.chart, dropSide(event) === 'after'));
        }
      }}
    >
      {content}
    </figure>
  );
}

/**
 * Returns a copy of `context` with the timeline's current array of times. The array of the last
 * frame may be outdated, because the timeline moves times within its memory.
 */
function updateWindowTimes(context: PlotContext): PlotContext {
  return { ...context, window: { ...context.window, times_ms: context.timeline.times_ms } };
}

/** Returns whether a dragged chart is over the left or the right half of another chart. */
function dropSide({ clientX, currentTarget }: DragEvent): 'before' | 'after' {
  const { left, width } = (currentTarget as Element).getBoundingClientRect();
  return clientX < left + width / 2 ? 'before' : 'after';
}

function gesturesOf({ id }: Plot, change: ChangeState): GestureListener {
  return {
    onZoom: (a_ms, b_ms) => change((state) => zoomTo(state, a_ms, b_ms)),
    onZoomBy: (factor, at_ms) => change((state, now_ms) => zoomBy(state, factor, at_ms, now_ms)),
    onGrab: () => {
      let grabbed: [DashboardState, now_ms: number] | null = null;
      return (by_ms) =>
        change((state, now_ms) => {
          const [from, at_ms] = (grabbed ??= [state, now_ms]);
          return moveBy(from, by_ms, at_ms);
        });
    },
    onAxis: (a, b) => change((state) => withAxisRange(state, id, [a, b])),
    onReset: () => change((state) => withAxisRange(resume(state), id, null)),
  };
}

function importPlotCopy(): Promise<typeof import('./plot-copy')> {
  return import('./plot-copy');
}

function PlotMenu({
  actions,
}: {
  /** The actions by name. An action returns a message, or `null` to close the menu. */
  actions: Record<string, () => Promise<string> | null>;
}) {
  const [isOpen, setOpen] = useState(false);
  const [message, setMessage] = useState('');
  const run = async (name: string, menu: Element | null): Promise<void> => {
    // The message is cleared first, so that screen readers announce the same message again.
    setMessage('');
    try {
      const answer = await actions[name]?.();
      setMessage(answer ?? '');
      if (answer === null) {
        setOpen(false);
        // The chart may move in the next frame and lose the focus, so the focus is set after that.
        requestAnimationFrame(() => menu?.querySelector('summary')?.focus());
      }
    } catch (error) {
      setMessage(trans.__('Not copied: %1', String(error)));
    }
  };
  const onOpen = (open: boolean): void => {
    // Browsers only allow access to the clipboard directly after a click, so the code must be
    // loaded before the click.
    importPlotCopy().catch(() => undefined);
    setOpen(open);
    setMessage('');
  };
  return (
    <Menu label="⋯" name={trans.__('Chart menu')} isOpen={isOpen} onOpen={onOpen}>
      {isOpen && (
        <div class="gpumon-plot-menu">
          {Object.keys(actions).map((name) => (
            <button
              type="button"
              key={name}
              onClick={({ currentTarget }) => void run(name, currentTarget.closest('details'))}
            >
              {name}
            </button>
          ))}
          <p role="status" class="gpumon-missing">
            {message}
          </p>
        </div>
      )}
    </Menu>
  );
}

/** The lower edge of a chart, which resizes all charts. A double click resets their height. */
function HeightHandle({
  height_px,
  isFirst,
  change,
}: {
  height_px: number;
  isFirst: boolean;
  change: ChangeState;
}) {
  const grabbed = useRef<{ y: number; height_px: number } | null>(null);
  const resize = (px: number | null): void => change((state) => withHeight(state, px));
  return (
    <div
      class="gpumon-height"
      role="separator"
      aria-orientation="horizontal"
      aria-label={trans.__('Height of charts')}
      aria-valuemin={HEIGHTS_PX[0]}
      aria-valuemax={HEIGHTS_PX[1]}
      aria-valuenow={height_px}
      title={trans.__('Drag to resize all charts, double-click to reset')}
      tabIndex={isFirst ? 0 : -1}
      onDblClick={() => resize(null)}
      onPointerDown={({ currentTarget, clientY: y, pointerId }) => {
        currentTarget.setPointerCapture(pointerId);
        grabbed.current = { y, height_px };
      }}
      onPointerMove={({ clientY }) => {
        if (grabbed.current !== null) {
          resize(grabbed.current.height_px + clientY - grabbed.current.y);
        }
      }}
      onLostPointerCapture={() => {
        grabbed.current = null;
      }}
      onKeyDown={(event) => {
        if (event.key === 'ArrowUp' || event.key === 'ArrowDown') {
          event.preventDefault();
          resize(height_px + (event.key === 'ArrowUp' ? -STEP_PX : STEP_PX));
        }
      }}
    />
  );
}
