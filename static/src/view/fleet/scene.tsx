import type { ComponentChild } from 'preact';

import { plainText } from '../../lib/text';
import { trans } from '../../lib/translation';
import { columnsOf, rowName, type Columns } from '../../model/fleet/columns';
import { parseFilter } from '../../model/fleet/filter';
import type { FleetAnswers } from '../../model/fleet/reader';
import type { FleetState } from '../../model/fleet/state';
import { concernsOf, countCriticalGpus, totalsOf } from '../../model/fleet/totals';
import type { Fleet } from '../../wire';
import type { Palette } from '../palette';

export interface NodeOpener {
  /** Returns the URL of the page of `node`. */
  hrefOf: (node: string) => string;
  /** Opens a node in a way that lets the user return to the fleet. */
  open: (node: string) => void;
}

/** The data that the parts of the view share, and the functions that change them. */
export interface Scene
  extends ReturnType<typeof computeFleetValues>, ReturnType<typeof computeFilteredFleet> {
  /** The ID of the view, which is the prefix of the IDs of its elements. */
  id: string;
  shown: FleetState;
  /** Whether the fleet has been loaded. Until then, it is empty. */
  isKnown: boolean;
  answers: FleetAnswers;
  now_ms: number;
  /** The selected time range as text for users. */
  range: string;
  palette: Palette;
  /** Whether table rows have two lines. */
  isNarrow: boolean;
  /** The selected row, and the row under the pointer; `null` for none. */
  selected: number | null;
  pointed: number | null;
  opener: NodeOpener;
  change: (changes: Partial<FleetState>) => void;
  /** Adds a word to the filter, or removes it if the filter already contains it. */
  choose: (word: string) => void;
  /** Selects a row. If `byKeys` is set, the selection is announced. */
  select: (row: number | null, byKeys: boolean) => void;
  point: (row: number | null) => void;
  openNode: (node: number) => void;
  /** Called before a link opens a node. */
  leave: () => void;
}

/** Computes the values that only depend on the fleet. */
export function computeFleetValues(fleet: Fleet) {
  const columns = columnsOf(fleet);
  return {
    columns,
    /** The sums of all GPUs. */
    all: totalsOf(columns, null),
    concerns: concernsOf(columns),
    /** The number of critical GPUs. */
    critical: countCriticalGpus(columns),
  };
}

/** Returns the part of a fleet that matches a filter. */
export function computeFilteredFleet(columns: Columns, order: Uint32Array, filter: string) {
  const { match, mistakes } = parseFilter(filter);
  const matches = match(columns);
  const nodes = order.filter(
    (node) => matches === null || columns.rowsOf(node).some((row) => matches[row] === 1),
  );
  return {
    /** An array with 1 for each matching row; `null` if there is no filter. */
    matches,
    /** The error messages about the filter. */
    mistakes,
    /** The nodes with matching rows, in order. */
    nodes,
    /** The sums of the matching rows. */
    totals: totalsOf(columns, matches),
  };
}

/** Returns the path of a node's page, or `null` if no URL can contain the node's name. */
export function nodePath(node: string): string | null {
  // In a path, these names refer to another folder.
  if (node === '.' || node === '..' || node === '') {
    return null;
  }
  try {
    return `nodes/${encodeURIComponent(node)}/`;
  } catch {
    // A name with an incomplete surrogate pair cannot be encoded in a URL.
    return null;
  }
}

/** Returns why a node cannot be opened, or `null` if it can. */
export function explainUnopenableNode({ fleet }: Columns, node: number): string | null {
  if (nodePath(fleet.nodes.name[node] ?? '') === null) {
    return trans.__('The name of this node cannot be used in a URL.');
  }
  const reason = fleet.nodes.unopenable[node];
  return reason === undefined ? null : plainText(reason);
}

/**
 * A link to a node's page. A click with a modifier opens the page in another tab or window, like
 * any other link.
 */
export function NodeLink({
  scene: { columns, opener, leave, openNode },
  node,
  ...rest
}: {
  scene: Scene;
  node: number;
  class: string;
  children: ComponentChild;
}) {
  return (
    <a
      {...rest}
      href={opener.hrefOf(columns.fleet.nodes.name[node] ?? '')}
      onClick={(event) => {
        if (
          event.button + Number(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey)
        ) {
          leave();
        } else {
          event.preventDefault();
          openNode(node);
        }
      }}
    />
  );
}

/** A name that is shortened if it is too long. The number at its end is kept: `node-…0412 / 3`. */
export function ShortenedName({ text, rest = '' }: { text: string; rest?: string }) {
  const [number = ''] = /\d[\d.:_-]{0,15}$/.exec(text) ?? [];
  // The unit `ch` is the width of a digit. The characters of `rest`, such as spaces and slashes,
  // are narrower on average.
  const end_ch = number.length + 0.8 * rest.length;
  return (
    <span class="gpumon-fleet-name" style={{ '--_end': `${end_ch}ch` }}>
      <bdi>{text.slice(0, text.length - number.length)}</bdi>
      <bdi>{number + rest}</bdi>
    </span>
  );
}

/** The name of a row: `node-0412 / 3`, or only the node. */
export function RowName({ columns, row }: { columns: Columns; row: number }) {
  const name = columns.nodeNames[columns.node[row] ?? 0] ?? '';
  return <ShortenedName text={name} rest={rowName(columns, row).slice(name.length)} />;
}
