import type { ComponentChild, ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

export interface ModalProps {
  class: string;
  label: string;
  testId: string;
  isOpen: boolean;
  /** Called when the dialog has closed, by a key, a press outside or otherwise. */
  onClose: () => void;
  /** Called for keys. The page below the dialog does not receive them. */
  onKeyDown?: (event: KeyboardEvent) => void;
  children: ComponentChildren;
}

/**
 * A modal dialog. Escape closes it, and so does a press outside of its content, unless the press
 * started inside, which selects text.
 */
export function Modal({
  label,
  testId,
  isOpen,
  onClose,
  onKeyDown,
  children,
  class: className,
}: ModalProps): ComponentChild {
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
        // The content covers all of the dialog.
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
