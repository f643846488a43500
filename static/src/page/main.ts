/**
 * The server's page: all GPUs of the machine, their charts, or a fleet, in a light or dark theme.
 * It keeps the user's position in the fleet.
 */

import '../view/view.css';
import './page.css';

import { Feed, mountDashboard, mountMonitor } from '../index';
import { ENCODING } from '../lib/socket';
import { StoredValue } from '../lib/stored';
import { trans } from '../lib/translation';
import type { Request } from '../model/request';
import type { MountedFleet } from '../view/fleet/index';
import type { HeadAction } from '../view/menu';
import { loadPart } from '../view/part';
import { diagnoseConnection, diagnoseNode } from './diagnose';
import { SignIn } from './sign-in';

/**
 * The prefixes of URL fragments such as `#charts?gpu=0&span=5` and
 * `#fleet?metric=memory&filter=ana`.
 */
const CHARTS = '#charts';
const FLEET = '#fleet';

/** The view that the page is showing. */
interface ShownView {
  themeChanged: () => void;
  dispose: () => void;
  /** Called after the user has signed in. */
  retry?: () => void;
  /** Shows another URL fragment. Returns `false` if it belongs to another view. */
  show: (address: string) => boolean;
}

interface PageParts {
  host: HTMLElement;
  feed: Feed;
  request: Request;
  actions: (...first: readonly HeadAction[]) => readonly HeadAction[];
  onRefused: () => void;
}

function startPage(host: HTMLElement): void {
  const request: Request = (path, init) => fetch(new URL(path, document.baseURI), init);
  const above = FleetPosition.aboveNode();
  const signIn = new SignIn(request, () => {
    feed.retryNow();
    shown?.retry?.();
  });
  const feed = new Feed({
    openSocket: () => new WebSocket(streamUrl()),
    request,
    // The server of a fleet forwards only requests without side effects to its nodes, so a node's
    // page is read-only.
    readOnly: above !== null,
    diagnose: async () =>
      (await signIn.checkSession()) ??
      (above === null ? null : await diagnoseNode(request)) ??
      diagnoseConnection(),
  });
  // This subscription keeps the connection and the store while views are replaced.
  const subscription = feed.subscribe((frame) => {
    const { hasFleet, inventory, sample } = feed.store;
    const isFleetOnly = hasFleet && inventory === null && sample === null;
    if (frame?.type === 'hello' && isFleetOnly && !location.hash.startsWith(FLEET)) {
      location.replace(FLEET);
    }
  });
  subscription.update({ active: false });
  let shown: ShownView | null = null;
  const theme = new Theme(() => shown?.themeChanged());
  let fleetAddress: string | null = null;
  void above?.findFleetUrl().then((address) => {
    fleetAddress = address;
  });
  const fleetLink = (): HeadAction[] => {
    const href = fleetAddress ?? (above === null && feed.store.hasFleet ? FLEET : null);
    return href === null ? [] : [{ id: 'gpumon-fleet-link', label: trans.__('Fleet'), href }];
  };
  const page: PageParts = {
    host,
    feed,
    request,
    actions: (...first) => [...first, ...signIn.headActions(), theme.headAction()],
    onRefused: () => void signIn.checkSession(),
  };
  const follow = (): void => {
    const address = location.hash;
    if (shown?.show(address) !== true) {
      shown?.dispose();
      shown = address.startsWith(FLEET)
        ? showFleet(page)
        : address.startsWith(CHARTS)
          ? showCharts(page, fleetLink)
          : showOverview(page, fleetLink);
    }
  };
  window.addEventListener('hashchange', follow);
  follow();
}

/** Returns the URL of the server's stream, including the prefix of a proxy. */
function streamUrl(): URL {
  const url = new URL(`api/v1/stream?encoding=${ENCODING}`, document.baseURI);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  return url;
}

function showOverview(
  { host, feed, actions }: PageParts,
  fleetLink: () => HeadAction[],
): ShownView {
  const monitor = mountMonitor(host, {
    feed,
    title: 'gpumon',
    actions: () => actions(...fleetLink()),
    onOpenCharts: () => {
      location.hash = CHARTS;
    },
    onOpenGpu: (index) => {
      location.hash = `${CHARTS}?gpu=${index}`;
    },
  });
  return {
    ...monitor,
    show: (address) => !address.startsWith(CHARTS) && !address.startsWith(FLEET),
  };
}

function showCharts({ host, feed, actions }: PageParts, fleetLink: () => HeadAction[]): ShownView {
  const address = new ViewAddress(CHARTS);
  const dashboard = mountDashboard(host, {
    feed,
    title: 'gpumon',
    address: address.read(),
    actions: () =>
      actions({ id: 'gpumon-all-gpus', label: trans.__('All GPUs'), href: '#' }, ...fleetLink()),
    onAddress: (shown) => address.save(shown),
  });
  focusView(host);
  return {
    ...dashboard,
    show: (whole) => address.follow(whole, (shown) => dashboard.show(shown)),
  };
}

function showFleet({ host, request, feed, actions, onRefused }: PageParts): ShownView {
  const address = new ViewAddress(FLEET);
  const place = FleetPosition.ofThisPage();
  const back = (): HeadAction[] =>
    feed.store.inventory === null
      ? []
      : [{ id: 'gpumon-machine', label: trans.__('This machine'), href: '#' }];
  let fleet: MountedFleet | null = null;
  let isDisposed = false;
  const load = async (): Promise<void> => {
    const { mountFleet, nodePath } = await loadPart(import('../view/fleet/index'));
    if (isDisposed) {
      return;
    }
    const hrefOf = (node: string): string => nodePath(node) ?? '';
    fleet = mountFleet(host, {
      title: trans.__('Fleet'),
      request,
      actions: () => actions(...back()),
      opener: { hrefOf, open: (node) => location.assign(hrefOf(node)) },
      address: address.read(),
      onRefused,
      onAddress: (shown) => address.save(shown),
      onLeave: () => place.savePosition(location.hash),
    });
    const scroll = place.takeScrollPosition(location.hash);
    if (scroll !== null) {
      fleet.scrollTo(scroll);
    }
    focusView(host);
  };
  load().catch((error: unknown) => {
    host.textContent = error instanceof Error ? error.message : String(error);
  });
  return {
    themeChanged: () => fleet?.themeChanged(),
    retry: () => fleet?.retry(),
    dispose: () => {
      isDisposed = true;
      fleet?.dispose();
      host.replaceChildren();
    },
    show: (whole) => address.follow(whole, (shown) => fleet?.show(shown)),
  };
}

/** The part of the URL fragment after the prefix of a view. */
class ViewAddress {
  private whole = location.hash;

  constructor(private readonly prefix: string) {}

  read(): string {
    return this.whole.slice(this.prefix.length + 1);
  }

  /** Saves the state of the view, unless the URL has changed meanwhile. */
  save(shown: string): void {
    if (location.hash === this.whole) {
      history.replaceState(null, '', shown === '' ? this.prefix : `${this.prefix}?${shown}`);
      this.whole = location.hash;
    }
  }

  /** Shows another URL fragment. Returns `false` if it belongs to another view. */
  follow(whole: string, show: (address: string) => void): boolean {
    const isOwn = whole.startsWith(this.prefix);
    if (isOwn && whole !== this.whole) {
      this.whole = whole;
      show(this.read());
    }
    return isOwn;
  }
}

/** Focuses the view, so that its keyboard shortcuts work immediately. */
function focusView(host: HTMLElement): void {
  host.querySelector<HTMLElement>('[tabindex]')?.focus({ preventScroll: true });
}

const STORED_THEME = new StoredValue('gpumon-theme');

/**
 * The theme of the page, light or dark. It follows the system's theme until the user selects the
 * other theme.
 */
class Theme {
  /**
   * The system's theme at the last `change` event. The media query must not be read at other times,
   * because Chromium does not report a change if a script has already read the new value.
   */
  private isSystemDark: boolean;

  constructor(private readonly onChange: () => void) {
    const apply = (): void => this.applyTheme(this.isDark);
    const system = matchMedia('(prefers-color-scheme: dark)');
    this.isSystemDark = system.matches;
    system.addEventListener('change', ({ matches }) => {
      this.isSystemDark = matches;
      apply();
    });
    // The page is printed in the light theme, because paper is white.
    window.addEventListener('beforeprint', () => this.applyTheme(false));
    window.addEventListener('afterprint', apply);
    apply();
  }

  headAction(): HeadAction {
    return {
      id: 'gpumon-theme',
      icon: 'page-theme',
      label: this.isDark ? trans.__('Switch to light theme') : trans.__('Switch to dark theme'),
      onClick: () => {
        const isDark = !this.isDark;
        // If the system's theme is selected again, the page follows the system.
        STORED_THEME.set(isDark === this.isSystemDark ? null : themeName(isDark));
        this.applyTheme(isDark);
      },
    };
  }

  private get isDark(): boolean {
    const stored = STORED_THEME.get();
    return stored === 'dark' || (stored !== 'light' && this.isSystemDark);
  }

  private applyTheme(isDark: boolean): void {
    document.documentElement.dataset.theme = themeName(isDark);
    this.onChange();
  }
}

function themeName(isDark: boolean): string {
  return isDark ? 'dark' : 'light';
}

const POSITION_KEY = 'gpumon-fleet-place';
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
class FleetPosition {
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
      sessionStorage.setItem(POSITION_KEY, JSON.stringify(left));
    } catch {
      // If a private window has no storage, the link leads to the start of the fleet.
    }
  }

  /**
   * If the stored position belongs to `address`, removes it from the storage and returns its scroll
   * position. Otherwise returns `null`.
   */
  takeScrollPosition(address: string): number | null {
    const left = this.readStoredPosition();
    if (left?.address !== address) {
      return null;
    }
    sessionStorage.removeItem(POSITION_KEY);
    return left.scroll;
  }

  /** Returns the URL of the fleet to return to, or `null` if there is no fleet. */
  async findFleetUrl(): Promise<string | null> {
    const left = this.readStoredPosition();
    if (left !== null) {
      return `${this.base.href}${left.address}`;
    }
    // Without a stored position, there are two possibilities: the node's URL was opened directly,
    // or there is no fleet and a proxy happens to use a path like that of a node. The request finds
    // out which.
    try {
      const answer = await fetch(new URL('api/v1/fleet', this.base), { method: 'HEAD' });
      return answer.ok || answer.status === 401 ? `${this.base.href}#fleet` : null;
    } catch {
      return null;
    }
  }

  private readStoredPosition(): StoredPosition | null {
    try {
      const left = JSON.parse(
        sessionStorage.getItem(POSITION_KEY) ?? 'null',
      ) as StoredPosition | null;
      return left?.base === this.base.pathname && left.address.startsWith('#fleet') ? left : null;
    } catch {
      return null;
    }
  }
}

const host = document.getElementById('gpumon');
if (host !== null) {
  host.replaceChildren();
  startPage(host);
}
