/** Charts that belong together, under their heading. */

import { h, KeyedRows, setAttribute, setShown, setText } from '../../lib/dom';
import type { ScreenObserver } from '../../lib/screen';
import { trans } from '../../lib/translation';
import { HOST, type Plot, type Section } from '../../model/dashboard/plots';
import type { AnnotationSet } from './annotations';
import type { PlotContext } from './context';
import type { PlotView } from './plot';

export class SectionView {
  readonly element: HTMLElement;
  private readonly heading = h('h2');
  private readonly grid = h('div', { class: 'gpumon-plots' });
  private readonly missing = h('p', { class: 'gpumon-missing' });
  private readonly plots = new KeyedRows(
    this.grid,
    ({ key }: Plot) => key,
    () => this.newPlot(),
    (view) => {
      this.screen.unobserve(view.element);
      view.dispose();
    },
  );

  constructor(
    private readonly make: () => PlotView,
    private readonly screen: ScreenObserver,
  ) {
    this.element = h('section', {}, this.heading, this.grid, this.missing);
  }

  /** Writes everything that is text. */
  update(section: Section, context: PlotContext): void {
    setText(this.heading, section.title);
    setAttribute(this.element, 'data-section', section.key);
    const healthy = section.gpu === null || section.gpu.now?.health.state === 'ok';
    const own = {
      ...context,
      freshness: { ...context.freshness, stale: context.freshness.stale || !healthy },
    };
    this.plots.update(section.plots, (view, plot) => view.update(plot, own));
    setShown(this.missing, section.missing.length > 0);
    setText(this.missing, trans.__('Not on this board or driver: %1.', section.missing.join(', ')));
  }

  /** Draws the lines; when all sections are written, since letters on a canvas ask for their styles. */
  draw({ key, plots }: Section, context: PlotContext, annotations: AnnotationSet): void {
    for (const plot of plots) {
      this.plots
        .get(plot.key)
        ?.draw(plot, context, key === HOST ? annotations.machine : annotations.of(plot.gpu));
    }
  }

  /** The pixels of the device that its widest chart has. */
  get width(): number {
    return Math.max(0, ...this.plots.all.map((plot) => plot.width));
  }

  revealAll(): void {
    this.plots.all.forEach((plot) => plot.reveal());
  }

  dispose(): void {
    this.plots.update([], () => undefined);
  }

  private newPlot(): PlotView {
    const plot = this.make();
    this.screen.observe(plot.element, (onScreen) => plot.setOnScreen(onScreen));
    return plot;
  }
}
