const KEY = 'gpumon-fleet-place';
/** The path of a node's page, which is two levels below the fleet's page. */
const NODE_PAGE = /\/nodes\/[^/]+\/$/;

interface StoredPosition {
  /** The path of the fleet's page under which the position was stored. */
  base: string;
  /** The fragment of the URL, such as `#fleet?filter=ana`. */
  address: string;
  scroll: number;
}

/**
 * The user's position in the fleet: its URL fragment and scroll position when a node was opened.
 * The position is kept until the tab is closed, so that the user can return to it.
 */
export class FleetPosition {
  private constructor(private readonly base: URL) {}

  static ofThisPage(): FleetPosition {
    return new FleetPosition(new URL('./', document.baseURI));
  }

  /**
   * On the page of a node, returns the position in the fleet that contains the node. On other
   * pages, returns `null`.
   */
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
      // If a private window has no storage, the link leads to the start of the fleet.
    }
  }

  /** Returns the stored scroll position of `address` and clears the stored position. */
  takeScrollPosition(address: string): number | null {
    const left = this.readStoredPosition();
    if (left?.address !== address) {
      return null;
    }
    sessionStorage.removeItem(KEY);
    return left.scroll;
  }

  /** Returns the URL of the fleet to return to, or `null` if there is no fleet. */
  async findAddress(): Promise<string | null> {
    const left = this.readStoredPosition();
    if (left !== null) {
      return `${this.base.href}${left.address}`;
    }
    // Without a stored position, the node's URL was opened directly, or this is no fleet at all
    // because a proxy uses such a path. The request finds out which.
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
