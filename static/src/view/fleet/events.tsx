import { useMemo } from 'preact/hooks';

import { formatCount, formatDateAndTime, formatTimeWithDateUnlessToday } from '../../lib/format';
import { plainText, joinSentences } from '../../lib/text';
import { trans } from '../../lib/translation';
import { xidTexts } from '../../model/fleet/describe';
import type { FleetEvent } from '../../wire';
import { ShortenedName, type Scene } from './scene';
import { Listing, nodeCell, Sentence, stateCell, Table, textCell } from './table';

/** The Xids after which a GPU is lost or its memory is unreliable. */
const SEVERE_XIDS: readonly (number | null)[] = [48, 74, 79, 94, 95, 119, 120];

/** Driver errors, lost GPUs and unreachable nodes, with advice. */
export function Events(scene: Scene) {
  const { columns, nodes, matches, answers, now_ms, isNarrow } = scene;
  const { value, why, isLoading } = answers.events;
  const { name } = columns.fleet.nodes;
  const places = useMemo(() => new Map(name.map((one, place) => [one, place])), [name]);
  const events = useMemo(() => {
    const shown = new Set(nodes);
    const all = value?.events ?? [];
    return matches === null ? all : all.filter(({ node }) => shown.has(places.get(node) ?? -1));
  }, [value, matches, nodes, places]);
  const isCut = value !== null && value.events_total > value.events.length;
  return (
    <Listing
      class="gpumon-fleet-events"
      title={
        value === null ? trans.__('Events') : trans.__('Since %1', formatDateAndTime(value.from_ms))
      }
      note={joinSentences([
        why,
        ...(value?.problems ?? []),
        isCut
          ? trans.__(
              'The newest %1 of %2 are listed.',
              formatCount(value.events.length),
              formatCount(value.events_total),
            )
          : null,
      ])}
      isLoading={isLoading}
      empty={
        value === null
          ? (why ?? trans.__('Loading'))
          : value.events.length > 0
            ? trans.__('Nothing matches this filter.')
            : trans.__('No driver errors and no lost GPUs in this time.')
      }
    >
      {events.length === 0 ? null : (
        <Table
          id="gpumon-fleet-events"
          name={trans.__('Events')}
          rows={events}
          columns={[
            {
              label: trans.__('Last'),
              width: 200,
              cell: ({ lasts, last_ms }) =>
                textCell(lasts ? trans.__('now') : formatTimeWithDateUnlessToday(last_ms, now_ms)),
            },
            {
              label: trans.__('GPU'),
              width: 190,
              cell: ({ node, gpu }) => {
                const rest = gpu === null ? '' : ` / ${gpu}`;
                const place = places.get(node);
                // Events of nodes that no longer exist have no link.
                return place === undefined
                  ? { content: <ShortenedName text={plainText(node, 120)} rest={rest} /> }
                  : nodeCell(scene, place, rest);
              },
            },
            {
              label: trans.__('Count'),
              kind: 'number',
              width: 64,
              cell: (event) => (event.count > 1 ? formatCount(event.count) : ''),
            },
            {
              label: trans.__('Event'),
              kind: 'long',
              cell: (event) => {
                const { text, advice } = describeFleetEvent(event);
                const isSevere = event.lasts || SEVERE_XIDS.includes(event.xid);
                return stateCell(
                  text,
                  isSevere ? 'critical' : 'warning',
                  `${text} ${advice}`.trim().replaceAll('`', ''),
                );
              },
            },
            {
              label: trans.__('Fix'),
              kind: 'wide',
              cell: (event) => {
                const { advice } = describeFleetEvent(event);
                return { content: <Sentence text={advice} />, title: advice.replaceAll('`', '') };
              },
            },
          ]}
          isNarrow={isNarrow}
          hasSentences
        />
      )}
    </Listing>
  );
}

function describeFleetEvent({ kind, xid }: FleetEvent): { text: string; advice: string } {
  switch (kind) {
    case 'xid':
      return xid === null ? { text: trans.__('Driver error'), advice: '' } : xidTexts(xid);
    case 'gpu_not_responding':
      return {
        text: trans.__('GPU not responding'),
        advice: trans.__(
          'Open the node to see whether the GPU is lost or hangs. Reboot the machine if it does not recover.',
        ),
      };
    case 'node_unreachable':
      return {
        text: trans.__('Node unreachable'),
        advice: trans.__('Check that the machine is up, and that its metrics can be reached.'),
      };
  }
}
