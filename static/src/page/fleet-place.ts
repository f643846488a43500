/** Where somebody was in the fleet when they opened a node, so that they come back to it: as long as their tab is open. */

const KEY = 'gpumon-fleet-place';
/** The page of a node stands two folders below the fleet. */
const NODE_PAGE = /\/nodes\/[^/]+\/$/;

interface Left {
  /** The address of the fleet's page. */
  base: string;
  /** What was shown, as `#fleet?filter=ana`. */
  address: string;
  scroll: number;
}

export class FleetPlace {
  private constructor(private readonly base: URL) {}

  static here(): FleetPlace {
    return new FleetPlace(new URL('./', document.baseURI));
  }

  /** The fleet that this page shows a node of; `null` where its address says nothing of the kind. */
  static above(): FleetPlace | null {
    return NODE_PAGE.test(new URL('./', document.baseURI).pathname)
      ? new FleetPlace(new URL('../../', document.baseURI))
      : null;
  }

  leave(address: string): void {
    const left: Left = { base: this.base.pathname, address, scroll: window.scrollY };
    try {
      sessionStorage.setItem(KEY, JSON.stringify(left));
    } catch {
      // A private window may have no storage: the way back then leads to the fleet, and not to the place.
    }
  }

  /** How far it was scrolled, where this is what was shown then; once. */
  comeBack(address: string): number | null {
    const left = this.left();
    if (left?.address !== address) {
      return null;
    }
    try {
      sessionStorage.removeItem(KEY);
    } catch {
      // As above.
    }
    return left.scroll;
  }

  /** The way back; `null` where there is no fleet above. */
  async address(): Promise<string | null> {
    const left = this.left();
    if (left !== null) {
      return `${this.base.href}${left.address}`;
    }
    // Somebody was given this address, or a proxy happens to have such a path.
    try {
      const answer = await fetch(new URL('api/v1/fleet', this.base), { method: 'HEAD' });
      return answer.ok || answer.status === 401 ? `${this.base.href}#fleet` : null;
    } catch {
      return null;
    }
  }

  private left(): Left | null {
    try {
      const left = JSON.parse(sessionStorage.getItem(KEY) ?? 'null') as Left | null;
      return left?.base === this.base.pathname && left.address.startsWith('#fleet') ? left : null;
    } catch {
      return null;
    }
  }
}
