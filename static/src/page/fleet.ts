/** The fleet on the page, and the ways to it: from the GPUs of this machine, and from those of one of its nodes. */

import { h, setShown } from '../lib/dom';
import type { Feed } from '../model/feed';
import type { Request } from '../model/request';
import { failedPart, part } from '../view/part';
import type { MountedFleet } from '../view/fleet/index';
import { FleetPlace } from './fleet-place';
import type { Shown } from './main';

/** Begins the part of the address that says what of the fleet to show: `#fleet?metric=memory&filter=ana`. */
export const FLEET = '#fleet';

export interface FleetPageOptions {
  request: Request;
  feed: Feed;
  actions: readonly HTMLElement[];
  /** The server asks for a token or a password. */
  onRefused: () => void;
}

/**
 * The way to the fleet. On the page of a node it goes back to what was shown of the fleet; on a server that shows nothing
 * else, it is gone at once.
 */
export function fleetLink(feed: Feed): HTMLElement {
  const link = h(
    'a',
    { class: 'gpumon-chip page-link', href: FLEET, 'data-testid': 'gpumon-fleet-link' },
    'Fleet',
  );
  setShown(link, false);
  const above = FleetPlace.above();
  if (above !== null) {
    void above.address().then((address) => {
      if (address !== null) {
        link.setAttribute('href', address);
        setShown(link, true);
      }
    });
    return link;
  }
  const subscription = feed.subscribe((frame) => {
    if (frame?.type === 'hello') {
      follow();
    }
  });
  subscription.update({ active: false });
  const follow = (): void => {
    const { hasFleet, inventory, sample } = feed.store;
    setShown(link, hasFleet);
    if (hasFleet && inventory === null && sample === null && link.isConnected) {
      subscription.unsubscribe();
      location.replace(FLEET);
    }
  };
  setShown(link, feed.store.hasFleet);
  return link;
}

export function showFleet(
  host: HTMLElement,
  { request, feed, actions, onRefused }: FleetPageOptions,
): Shown {
  const addressIn = (address: string): string => address.slice(FLEET.length + 1);
  const place = FleetPlace.here();
  let current = location.hash;
  let fleet: MountedFleet | null = null;
  let disposed = false;
  const back = h('a', { class: 'gpumon-chip page-link', href: '#' }, 'This machine');
  setShown(back, feed.store.inventory !== null);
  const load = async (): Promise<void> => {
    try {
      const { mountFleet, nodePath } = await part(import('../view/fleet/index'));
      if (disposed) {
        return;
      }
      const hrefOf = (node: string): string => nodePath(node) ?? '';
      fleet = mountFleet(host, {
        title: 'Fleet',
        request,
        actions: [back, ...actions],
        opener: { hrefOf, open: (node) => location.assign(hrefOf(node)) },
        address: addressIn(current),
        onRefused,
        onAddress: (address) => {
          // Who went elsewhere meanwhile is to stay there.
          if (location.hash === current) {
            history.replaceState(null, '', address === '' ? FLEET : `${FLEET}?${address}`);
            current = location.hash;
          }
        },
        onLeave: () => place.leave(location.hash),
      });
      const scroll = place.comeBack(current);
      if (scroll !== null) {
        fleet.scrollTo(scroll);
      }
      // Its keys work at once.
      host.querySelector<HTMLElement>('[tabindex]')?.focus({ preventScroll: true });
    } catch (error) {
      host.replaceChildren(failedPart(error));
    }
  };
  void load();
  return {
    themeChanged: () => fleet?.themeChanged(),
    retry: () => fleet?.retry(),
    dispose: () => {
      disposed = true;
      fleet?.dispose();
    },
    show: (address) => {
      if (address !== current && address.startsWith(FLEET)) {
        current = address;
        fleet?.show(addressIn(address));
      }
      return address.startsWith(FLEET);
    },
  };
}
