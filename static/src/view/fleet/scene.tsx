import type { ComponentChild } from 'preact';

import { plainText } from '../../lib/text';
import { trans } from '../../lib/translation';
import { rowName, type Columns } from '../../model/fleet/columns';
import type { FleetAnswers } from '../../model/fleet/reader';
import type { FleetShown } from '../../model/fleet/state';
import type { Totals } from '../../model/fleet/totals';
import type { Palette } from '../palette';

export interface NodeOpener {
  /** The address of a node's page. */
  hrefOf: (node: string) => string;
  /** Opens a node; from there, the user can come back. */
  open: (node: string) => void;
}

/** What the parts of the view show of a fleet, and how they change it. */
export interface Scene {
  columns: Columns;
  shown: FleetShown;
  /** 1 for each row that matches the filter; `null` without a filter. */
  matches: Uint8Array | null;
  /** The nodes with rows that match, in their order. */
  nodes: Uint32Array;
  /** The sums of the rows that match. */
  totals: Totals;
  /** The selected row; `null` if none is. */
  selected: number | null;
  answers: FleetAnswers;
  now_ms: number;
  /** The time range as text. */
  range: string;
  palette: Palette;
  /** Whether rows of tables have two lines, in a narrow view. */
  isNarrow: boolean;
  opener: NodeOpener;
  change: (changes: Partial<FleetShown>) => void;
  /** Adds a word to the filter, or removes it. */
  choose: (word: string) => void;
  /** Selects a row; by keys, it is announced. */
  select: (row: number | null, byKeys: boolean) => void;
  openNode: (node: number) => void;
  /** Called before a link opens a node. */
  leave: () => void;
}

/** The part of an address that is a node's page; `null` if no address can name the node. */
export function nodePath(node: string): string | null {
  // Between slashes these mean another folder.
  if (node === '.' || node === '..' || node === '') {
    return null;
  }
  try {
    return `nodes/${encodeURIComponent(node)}/`;
  } catch {
    // Half of a surrogate pair cannot be encoded.
    return null;
  }
}

/** Returns why a node cannot be opened; `null` if it can. */
export function closedReason({ fleet }: Columns, node: number): string | null {
  if (nodePath(fleet.nodes.name[node] ?? '') === null) {
    return trans.__('No address can name this node.');
  }
  const reason = fleet.nodes.unopenable[node];
  return reason === undefined ? null : plainText(reason);
}

export interface NodeLinkProps {
  scene: Scene;
  node: number;
  class: string;
  children: ComponentChild;
}

/** A link to a node's page; a click with a modifier opens it elsewhere, as with any other link. */
export function NodeLink({ scene, node, ...rest }: NodeLinkProps): ComponentChild {
  const { columns, opener, leave, openNode } = scene;
  return (
    <a
      {...rest}
      href={opener.hrefOf(columns.fleet.nodes.name[node] ?? '')}
      onClick={(event) => {
        const { button, ctrlKey, metaKey, shiftKey, altKey } = event;
        if (button === 0 && !ctrlKey && !metaKey && !shiftKey && !altKey) {
          event.preventDefault();
          openNode(node);
        } else {
          leave();
        }
      }}
    />
  );
}

/** A name whose number at the end is never cut: `node-…0412 / 3`. */
export function Name({ text, rest = '' }: { text: string; rest?: string }): ComponentChild {
  const [number = ''] = /\d[\d.:_-]{0,11}$/.exec(text) ?? [];
  return (
    <span class="gpumon-fleet-name">
      <bdi>{text.slice(0, text.length - number.length)}</bdi>
      <bdi>{`${number}${rest}`}</bdi>
    </span>
  );
}

/** The name of a row: `node-0412 / 3`, or the node alone. */
export function RowName({ columns, row }: { columns: Columns; row: number }): ComponentChild {
  const name = columns.nodeNames[columns.node[row] ?? 0] ?? '';
  return <Name text={name} rest={rowName(columns, row).slice(name.length)} />;
}
