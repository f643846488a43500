const KEY = 'gpumon-fleet-place';
/** The page of a node is two folders below the fleet. */
const NODE_PAGE = /\/nodes\/[^/]+\/$/;

interface LeftPlace {
  /** The path of the fleet's page. */
  base: string;
  /** The part behind the path, such as `#fleet?filter=ana`. */
  address: string;
  scroll: number;
}

/** The place in the fleet where somebody opened a node, to return to as long as the tab is open. */
export class FleetPlace {
  private constructor(private readonly base: URL) {}

  static here(): FleetPlace {
    return new FleetPlace(new URL('./', document.baseURI));
  }

  /** Returns the place in the fleet above the page of a node; `null` on other pages. */
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
      // A private window may have no storage. The link then leads to the start of the fleet.
    }
  }

  /** Returns how far `address` was scrolled when it was left, and forgets it. */
  comeBack(address: string): number | null {
    const left = this.readLeft();
    if (left?.address !== address) {
      return null;
    }
    sessionStorage.removeItem(KEY);
    return left.scroll;
  }

  /** Returns the address to return to; `null` without a fleet above. */
  async address(): Promise<string | null> {
    const left = this.readLeft();
    if (left !== null) {
      return `${this.base.href}${left.address}`;
    }
    // The address was opened directly, or a proxy has such a path without a fleet.
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
