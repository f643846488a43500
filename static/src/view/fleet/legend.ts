/** What the colors of the map mean. */

import { h, KeyedRows, setAttribute, setShown, setStyle, setText } from '../../lib/dom';
import { trans } from '../../lib/translation';
import { scaleEnds, type FleetMetric } from '../../model/fleet/metric';

/** A look that is no step of the scale. */
interface Sign {
  look: string;
  text: string;
}

export class Legend {
  readonly element: HTMLElement;
  private readonly low = h('span', {});
  private readonly high = h('span', {});
  private readonly ramp = h('span', { class: 'gpumon-fleet-ramp' });
  private readonly scale = h(
    'span',
    { class: 'gpumon-fleet-scale' },
    this.low,
    this.ramp,
    this.high,
  );
  private readonly signs = h('span', { class: 'gpumon-fleet-signs' });
  private readonly rows = new KeyedRows(
    this.signs,
    ({ look }: Sign) => look,
    ({ look }) => {
      const text = h('span', {});
      const swatch = h('span', { class: 'gpumon-fleet-sign', 'data-look': look });
      return { element: h('span', { class: 'gpumon-fleet-sign-of' }, swatch, text), text };
    },
  );

  constructor() {
    this.element = h(
      'div',
      { class: 'gpumon-fleet-legend', 'aria-hidden': 'true' },
      this.scale,
      this.signs,
    );
  }

  /** `missing` says why nothing has this reading. */
  update(metric: FleetMetric, missing: string | undefined): void {
    setShown(this.scale, metric !== 'conditions');
    setAttribute(this.ramp, 'data-metric', metric);
    if (metric !== 'conditions') {
      const [low, high] = scaleEnds(metric);
      setText(this.low, low);
      setText(this.high, high);
      setStyle(this.ramp, '--_color', `var(--gpumon-${metric})`);
    }
    this.rows.update(signsOf(metric, missing), ({ text }, sign) => setText(text, sign.text));
  }
}

function signsOf(metric: FleetMetric, missing: string | undefined): Sign[] {
  const gone = [
    { look: 'lost', text: trans.__('Not responding') },
    { look: 'unknown', text: trans.__('Node unreachable') },
  ];
  return metric === 'conditions'
    ? [
        { look: 'calm', text: trans.__('None') },
        { look: 'notice', text: trans.__('Notice') },
        { look: 'warning', text: trans.__('Warning') },
        { look: 'critical', text: trans.__('Critical') },
        ...gone,
      ]
    : [
        { look: 'severe', text: trans.__('Critical condition') },
        {
          look: 'missing',
          text:
            missing === undefined ? trans.__('No reading') : trans.__('No reading: %1', missing),
        },
        ...gone,
      ];
}
