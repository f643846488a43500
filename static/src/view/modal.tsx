import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

interface ModalProps {
  class: string;
  label: string;
  testId: string;
  isOpen: boolean;
  /** Called after the dialog was closed in any way. */
  onClose: () => void;
  /** Called for key presses, which do not reach the page below the dialog. */
  onKeyDown?: (event: KeyboardEvent) => void;
  children: ComponentChildren;
}

/**
 * A modal dialog. It closes on Escape and on a click outside its content. A click does not close it
 * if the mouse button was pressed inside, for example to select text.
 */
export function Modal({
  label,
  testId,
  isOpen,
  onClose,
  onKeyDown,
  children,
  class: className,
}: ModalProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const pressed = useRef<EventTarget | null>(null);
  useLayoutEffect(() => {
    if (isOpen) {
      dialog.current?.showModal();
    } else if (dialog.current?.open === true) {
      dialog.current.close();
    }
  }, [isOpen]);
  return (
    <dialog
      ref={dialog}
      class={className}
      aria-label={label}
      data-testid={testId}
      onClose={onClose}
      onPointerDown={({ target }) => {
        pressed.current = target;
      }}
      onClick={({ target, currentTarget }) => {
        // The content fills the dialog, so a click on the dialog itself is outside the content.
        if (target === currentTarget && pressed.current === currentTarget) {
          currentTarget.close();
        }
      }}
      onKeyDown={(event) => {
        event.stopPropagation();
        onKeyDown?.(event);
      }}
    >
      {children}
    </dialog>
  );
}
