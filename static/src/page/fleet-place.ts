const KEY = 'gpumon-fleet-place';
/** The path of a node's page, which is two levels below the fleet's page. */
const NODE_PAGE = /\/nodes\/[^/]+\/$/;

interface StoredPosition {
  /** The path of the fleet's page. */
  base: string;
  /** The fragment of the URL, such as `#fleet?filter=ana`. */
  address: string;
  scroll: number;
}

/**
 * The position in the fleet at which the user opened a node. It is stored until the tab is closed,
 * so that the user can return to it.
 */
export class FleetPosition {
  private constructor(private readonly base: URL) {}

  static ofThisPage(): FleetPosition {
    return new FleetPosition(new URL('./', document.baseURI));
  }

  /** Returns the position in the fleet above the page of a node, or `null` on other pages. */
  static aboveNode(): FleetPosition | null {
    return NODE_PAGE.test(new URL('./', document.baseURI).pathname)
      ? new FleetPosition(new URL('../../', document.baseURI))
      : null;
  }

  savePosition(address: string): void {
    const left: StoredPosition = { base: this.base.pathname, address, scroll: window.scrollY };
    try {
      sessionStorage.setItem(KEY, JSON.stringify(left));
    } catch {
      // A private window may have no storage. Then the link leads to the start of the fleet.
    }
  }

  /** Returns the stored scroll position of `address`, and removes it. */
  takeScrollPosition(address: string): number | null {
    const left = this.readStoredPosition();
    if (left?.address !== address) {
      return null;
    }
    sessionStorage.removeItem(KEY);
    return left.scroll;
  }

  /** Returns the URL to return to, or `null` if there is no fleet. */
  async findAddress(): Promise<string | null> {
    const left = this.readStoredPosition();
    if (left !== null) {
      return `${this.base.href}${left.address}`;
    }
    // The URL was opened directly, or a proxy has such a path without a fleet.
    try {
      const answer = await fetch(new URL('api/v1/fleet', this.base), { method: 'HEAD' });
      return answer.ok || answer.status === 401 ? `${this.base.href}#fleet` : null;
    } catch {
      return null;
    }
  }

  private readStoredPosition(): StoredPosition | null {
    try {
      const left = JSON.parse(sessionStorage.getItem(KEY) ?? 'null') as StoredPosition | null;
      return left?.base === this.base.pathname && left.address.startsWith('#fleet') ? left : null;
    } catch {
      return null;
    }
  }
}
