/** Driver errors, lost GPUs and unreachable nodes, with what to do about them. */

import { h, setAttribute, setShown, setText } from '../../lib/dom';
import { dateAndTime, since } from '../../lib/format';
import { count } from '../../lib/format';
import { remembered } from '../../lib/remembered';
import { plainText, sentences } from '../../lib/text';
import { trans } from '../../lib/translation';
import type { Columns } from '../../model/fleet/columns';
import { xidTexts } from '../../model/fleet/describe';
import type { Answered } from '../../model/fleet/reader';
import type { FleetEvent, FleetEvents } from '../../wire';
import type { NodeLinks } from './node-link';
import { writeNode, writeState, writeText } from './table/cells';
import { Table } from './table/table';

interface Row {
  columns: Columns;
  event: FleetEvent;
  now_ms: number;
}

export class EventView {
  readonly element: HTMLElement;
  private readonly note = h('p', { class: 'gpumon-fleet-note' });
  private readonly head = h('h2', {});
  private readonly empty = h('p', { class: 'gpumon-empty gpumon-fleet-empty' });
  private readonly table: Table<Row, never>;
  private readonly places = remembered(
    ({ fleet }: Columns) => new Map(fleet.nodes.name.map((name, place) => [name, place])),
  );
  /** Those whose nodes match what is looked for. */
  private readonly matching = remembered(
    (
      events: readonly FleetEvent[],
      places: ReadonlyMap<string, number>,
      nodes: ReadonlySet<number> | null,
    ) => (nodes === null ? events : events.filter(({ node }) => nodes.has(places.get(node) ?? -1))),
  );

  constructor(links: NodeLinks) {
    this.table = new Table<Row, never>({
      id: 'gpumon-fleet-events',
      name: trans.__('Events'),
      columns: [
        {
          label: trans.__('Last'),
          kind: 'text',
          width: 176,
          narrow: 64,
          write: (cell, { event, now_ms }) =>
            writeText(cell, event.lasts ? trans.__('now') : since(event.last_ms, now_ms)),
        },
        {
          label: trans.__('GPU'),
          kind: 'name',
          width: 190,
          narrow: 108,
          write: (cell, { columns, event }) => {
            const place = this.places(columns).get(event.node);
            const rest = event.gpu === null ? '' : ` / ${event.gpu}`;
            if (place === undefined) {
              // A node that is gone has a past, too.
              delete cell.dataset.node;
              setText(cell, `${plainText(event.node, 120)}${rest}`);
            } else {
              writeNode(cell, links, columns, place, rest);
            }
          },
        },
        {
          label: trans.__('What'),
          kind: 'text',
          write: (cell, { event }) => {
            const { text, advice } = textsOf(event);
            writeState(
              cell,
              text,
              event.lasts || isSevere(event) ? 'critical' : 'warning',
              `${text} ${advice}`.trim(),
            );
          },
        },
        {
          label: trans.__('Fix'),
          kind: 'text',
          wide: true,
          write: (cell, { event }) => writeText(cell, textsOf(event).advice),
        },
        {
          label: trans.__('Times'),
          kind: 'number',
          width: 64,
          wide: true,
          write: (cell, { event }) => setText(cell, event.count > 1 ? count(event.count) : ''),
        },
      ],
    });
    this.element = h(
      'div',
      { class: 'gpumon-fleet-events' },
      h('div', { class: 'gpumon-fleet-caption' }, this.head, this.note),
      this.table.element,
      this.empty,
    );
  }

  update(
    columns: Columns,
    answered: Answered<FleetEvents>,
    nodes: ReadonlySet<number> | null,
    now_ms: number,
  ): void {
    const { value, why, isLoading } = answered;
    const events = this.matching(value?.events ?? [], this.places(columns), nodes);
    setAttribute(this.element, 'aria-busy', String(isLoading));
    setText(
      this.head,
      value === null ? trans.__('Events') : trans.__('Since %1', dateAndTime(value.from_ms)),
    );
    const cut =
      value !== null && value.events_total > value.events.length
        ? [
            trans.__(
              'The newest %1 of %2 are listed.',
              count(value.events.length),
              count(value.events_total),
            ),
          ]
        : [];
    setText(this.note, sentences([why, ...(value?.problems ?? []), ...cut]));
    setShown(this.table.element, events.length > 0);
    setShown(this.empty, events.length === 0);
    setText(
      this.empty,
      value === null
        ? (why ?? trans.__('Loading'))
        : value.events.length > 0
          ? trans.__('Nothing matches this filter.')
          : trans.__('No driver errors and no lost GPUs in this time.'),
    );
    this.table.update({
      count: events.length,
      rowAt: (place) => {
        const event = events[place];
        return event === undefined ? event : { columns, event, now_ms };
      },
    });
  }

  dispose(): void {
    this.table.dispose();
  }
}

/** Xids after which a GPU is gone, or its memory is not to be trusted. */
const SEVERE: readonly number[] = [48, 74, 79, 94, 95, 119, 120];

function isSevere({ xid }: FleetEvent): boolean {
  return xid !== null && SEVERE.includes(xid);
}

function textsOf({ kind, xid }: FleetEvent): { text: string; advice: string } {
  switch (kind) {
    case 'xid':
      return xid === null ? { text: trans.__('Driver error'), advice: '' } : xidTexts(xid);
    case 'gpu_not_responding':
      return {
        text: trans.__('GPU not responding'),
        advice: trans.__(
          'Open the node to see whether it is lost or hangs; reboot the machine if it stays so.',
        ),
      };
    case 'node_unreachable':
      return {
        text: trans.__('Node unreachable'),
        advice: trans.__('Check that the machine is up, and that its metrics can be reached.'),
      };
  }
}
