/** Opens the fleet or a node of it; loaded when the first one is. */

import { MainAreaWidget } from '@jupyterlab/apputils';

import { gpuIcon } from '../icon';
import type { Fleets, FleetWidget } from './fleets';
import { FleetPanel } from './fleet-panel';
import { NodePanel } from './node-panel';

/** Shows what is open already, unless it is to be something else. A node stands beside the fleet, which keeps its place. */
export function openFleet(
  fleets: Fleets,
  address: string | null,
  node: string | null,
  isRestored: boolean,
): void {
  const { tracker, settings, options } = fleets;
  const { shell } = options.app;
  const known = tracker.find(({ content }) => content.machine === node);
  if (known !== undefined) {
    if (address !== null && known.content instanceof FleetPanel) {
      known.content.goTo(address);
    }
    shell.activateById(known.id);
    return;
  }
  const save = (): void => void tracker.save(widget);
  const content: FleetWidget =
    node === null
      ? new FleetPanel(address ?? '', {
          ...options,
          onAddress: save,
          onOpenNode: (name) => void fleets.open(null, name, false),
        })
      : new NodePanel(node, address ?? '', {
          ...options,
          onAddress: save,
          onFleet: () => void fleets.open(null, null, false),
        });
  const widget = new MainAreaWidget({ content });
  widget.id = `${content.id}-tab`;
  widget.title.icon = gpuIcon;
  widget.title.label = node ?? options.trans.__('GPU Fleet');
  widget.title.closable = true;
  if (settings !== null) {
    content.apply(settings);
  }
  void tracker.add(widget);
  shell.add(widget, 'main');
  if (!isRestored) {
    shell.activateById(widget.id);
  }
}
