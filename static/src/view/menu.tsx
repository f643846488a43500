/** Menus, and the actions in the header of a view and in its menu. */

import type { ComponentChild, ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

import { setAttribute, setStyle } from '../lib/dom';
import { trans } from '../lib/translation';

/** The minimum distance between the opened content and the edges of the view. */
const MARGIN_PX = 12;

interface MenuProps {
  label: ComponentChild;
  /** The accessible name and hover text, for a label that is an icon. */
  name?: string;
  class?: string;
  isOpen: boolean;
  /** Called when the menu opens or closes. */
  onOpen: (open: boolean) => void;
  children: ComponentChildren;
}

/**
 * A button that opens content over the view. The menu closes on Escape and on a click elsewhere.
 * Its content always stays within the view.
 */
export function Menu({ label, name, class: className = '', isOpen, onOpen, children }: MenuProps) {
  const menu = useRef<HTMLDetailsElement>(null);
  useLayoutEffect(() => {
    const element = menu.current;
    if (!isOpen || element === null) {
      return undefined;
    }
    placeContent(element);
    const closeOutside = ({ target }: Event): void => {
      if (!(target instanceof Node && element.contains(target))) {
        onOpen(false);
      }
    };
    document.addEventListener('pointerdown', closeOutside);
    return () => document.removeEventListener('pointerdown', closeOutside);
  }, [isOpen]);
  return (
    <details
      class={`gpumon-menu ${className}`.trim()}
      ref={menu}
      open={isOpen}
      onToggle={({ currentTarget }) => onOpen(currentTarget.open)}
      onKeyDown={(event) => {
        if (event.key === 'Escape' && isOpen) {
          event.stopPropagation();
          onOpen(false);
          event.currentTarget.querySelector('summary')?.focus();
        }
      }}
    >
      <summary class="gpumon-chip" aria-label={name} title={name}>
        {label}
      </summary>
      {children}
    </details>
  );
}

/**
 * Aligns the right edge of the content with that of its button, and moves the content into the view
 * if it would extend beyond it. If the content does not fit below the button and there is more room
 * above it, the content is placed above the button.
 */
function placeContent(menu: HTMLDetailsElement): void {
  const content = menu.lastElementChild;
  const view = menu.closest('.gpumon')?.getBoundingClientRect();
  if (view === undefined || !(content instanceof HTMLElement)) {
    return;
  }
  const { left, right, top, bottom } = menu.getBoundingClientRect();
  const last_px = view.right - MARGIN_PX - content.offsetWidth;
  const left_px = Math.max(view.left + MARGIN_PX, Math.min(right - content.offsetWidth, last_px));
  const above_px = top - Math.max(0, view.top) - MARGIN_PX;
  const below_px = window.innerHeight - bottom - MARGIN_PX;
  const opensUp = content.scrollHeight > below_px && above_px > below_px;
  setAttribute(content, 'data-up', opensUp ? '' : null);
  setStyle(content, '--_left', `${left_px - left}px`);
  setStyle(content, '--_room', `${opensUp ? above_px : below_px}px`);
}

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
function HeadActionButton({
  action: { id, label, title, href, onClick, opens, icon },
  onDone,
}: {
  action: HeadAction;
  onDone?: () => void;
}) {
  const shared = {
    class: icon ?? 'gpumon-chip',
    'data-testid': id,
    title: title ?? (icon === undefined ? undefined : label),
    'aria-label': icon === undefined ? undefined : label,
    onClick: ({ currentTarget }: { currentTarget: Element }) => {
      if (onDone !== undefined) {
        // A dialog that closes returns the focus to the element that had it before. At that time,
        // the menu is closed and this button is hidden. Therefore the button of the menu gets the
        // focus before the dialog opens.
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
export function HeadActions({ actions }: { actions: readonly HeadAction[] }) {
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
          isOpen={isOpen}
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
