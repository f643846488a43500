const KEY = 'gpumon-fleet-place';
/** The path of a node's page, which is two levels below the fleet's page. */
const NODE_PAGE = /\/nodes\/[^/]+\/$/;

interface LeftPlace {
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
export class FleetPlace {
  private constructor(private readonly base: URL) {}

  static here(): FleetPlace {
    return new FleetPlace(new URL('./', document.baseURI));
  }

  /** Returns the position in the fleet above the page of a node, or `null` on other pages. */
  static above(): FleetPlace | null {
    return NODE_PAGE.test(new URL('./', document.baseURI).pathname)
      ? new FleetPlace(new URL('../../', document.baseURI))
      : null;
  }

  leave(address: string): void {
    const left: LeftPlace = { base: this.base.pathname, address, scroll: window.scrollY };
    try {
      sessionStorage.setItem(KEY, JSON.stringify(left));
    } catch {
      // A private window may have no storage. Then the link leads to the start of the fleet.
    }
  }

  /** Returns the stored scroll position of `address`, and removes it. */
  comeBack(address: string): number | null {
    const left = this.readLeft();
    if (left?.address !== address) {
      return null;
    }
    sessionStorage.removeItem(KEY);
    return left.scroll;
  }

  /** Returns the URL to return to, or `null` if there is no fleet. */
  async address(): Promise<string | null> {
    const left = this.readLeft();
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

  private readLeft(): LeftPlace | null {
    try {
      const left = JSON.parse(sessionStorage.getItem(KEY) ?? 'null') as LeftPlace | null;
      return left?.base === this.base.pathname && left.address.startsWith('#fleet') ? left : null;
    } catch {
      return null;
    }
  }
}
