import type { ComponentChild } from 'preact';
import { useState } from 'preact/hooks';

import { trans } from '../lib/translation';
import { Menu } from './menu';

/** A button or link in the header of a view or in its menu. */
export interface HeadAction {
  /** The value of `data-testid`, by which tests find the action. */
  id: string;
  label: string;
  title?: string;
  /** The address of a link. */
  href?: string;
  onClick?: () => void;
  /** The kind of content that the action opens. Screen readers announce it. */
  opens?: 'dialog';
  /** The CSS class of the icon. The accessible name of a button with an icon is its label. */
  icon?: string;
  /** Whether the action is in the menu, because it is rarely used. */
  inMenu?: boolean;
}

/** An action as a link or a button. `onDone` is called after a click. */
export function HeadActionButton({
  action: { id, label, title, href, onClick, opens, icon },
  onDone,
}: {
  action: HeadAction;
  onDone?: () => void;
}): ComponentChild {
  const shared = {
    class: icon ?? 'gpumon-chip',
    'data-testid': id,
    title: title ?? (icon === undefined ? undefined : label),
    'aria-label': icon === undefined ? undefined : label,
    onClick: ({ currentTarget }: { currentTarget: Element }) => {
      if (onDone !== undefined) {
        // A dialog returns the focus to the element that had it before. The action's button is
        // hidden by then, so the menu gets the focus first.
        currentTarget.closest('details')?.querySelector('summary')?.focus();
        onDone();
      }
      onClick?.();
    },
  };
  const text = icon === undefined ? label : null;
  return href === undefined ? (
    <button type="button" aria-haspopup={opens} {...shared}>
      {text}
    </button>
  ) : (
    <a href={href} {...shared}>
      {text}
    </a>
  );
}

/** The buttons of the header, and a menu with rarely used actions. */
export function HeadActions({ actions }: { actions: readonly HeadAction[] }): ComponentChild {
  const [isOpen, setOpen] = useState(false);
  const inMenu = actions.filter((action) => action.inMenu === true);
  return (
    <span class="gpumon-head-actions">
      {actions
        .filter((action) => action.inMenu !== true)
        .map((action) => (
          <HeadActionButton key={action.id} action={action} />
        ))}
      {inMenu.length > 0 && (
        <Menu
          class="gpumon-head-menu"
          label="⋮"
          name={trans.__('More actions')}
          open={isOpen}
          onOpen={setOpen}
        >
          <div>
            {inMenu.map((action) => (
              <HeadActionButton key={action.id} action={action} onDone={() => setOpen(false)} />
            ))}
          </div>
        </Menu>
      )}
    </span>
  );
}
