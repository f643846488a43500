/** Ways to all there is of a node; where it cannot be opened, why. */

import { h } from '../../lib/dom';
import { plainText } from '../../lib/text';
import { trans } from '../../lib/translation';
import type { Columns } from '../../model/fleet/columns';

export interface NodeOpener {
  /** The address of a node's page. */
  hrefOf: (node: string) => string;
  /** Opens a node where whoever asks can come back from. */
  open: (node: string) => void;
}

/** The part of an address that is a node's page; `null` where no address can name it. */
export function nodePath(node: string): string | null {
  // Between slashes these mean another place.
  if (node === '.' || node === '..' || node === '') {
    return null;
  }
  try {
    return `nodes/${encodeURIComponent(node)}/`;
  } catch {
    // Half of a character has no bytes.
    return null;
  }
}

export class NodeLinks {
  private last: { key: string; link: HTMLElement } | null = null;

  constructor(
    private readonly opener: NodeOpener,
    private readonly leave: () => void,
  ) {}

  /** Why a node cannot be opened; `null` where it can. */
  reason({ fleet }: Columns, node: number): string | null {
    const name = fleet.nodes.name[node] ?? '';
    if (nodePath(name) === null) {
      return trans.__('No address can name this node.');
    }
    const reason = fleet.nodes.unopenable[node];
    return reason === undefined ? null : plainText(reason);
  }

  open(columns: Columns, node: number): boolean {
    const name = columns.fleet.nodes.name[node];
    if (name === undefined || this.reason(columns, node) !== null) {
      return false;
    }
    this.leave();
    this.opener.open(name);
    return true;
  }

  /** A link with the same text for every node, or the reason in its place. The same as last time for the same node. */
  of(columns: Columns, node: number): HTMLElement {
    const name = columns.fleet.nodes.name[node] ?? '';
    const reason = this.reason(columns, node);
    const key = JSON.stringify([name, reason]);
    if (this.last?.key !== key) {
      const link =
        reason === null
          ? this.link(name, trans.__('Open node'), 'gpumon-detail-link')
          : h('span', { class: 'gpumon-detail-closed' }, trans.__('Cannot be opened: %1', reason));
      this.last = { key, link };
    }
    return this.last.link;
  }

  /** A link that a click with a modifier opens elsewhere, as any other. */
  link(name: string, text: string, className: string): HTMLAnchorElement {
    const link = h('a', { class: className, href: this.opener.hrefOf(name) }, text);
    link.addEventListener('click', (event) => {
      this.leave();
      if (
        event.button === 0 &&
        !event.ctrlKey &&
        !event.metaKey &&
        !event.shiftKey &&
        !event.altKey
      ) {
        event.preventDefault();
        this.opener.open(name);
      }
    });
    return link;
  }
}
