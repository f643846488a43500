/** A press beside the content of a modal dialog closes it, and one that begins in it does not: that selects text. */
export function closeByPressBeside(dialog: HTMLDialogElement): void {
  let pressed: EventTarget | null = null;
  dialog.addEventListener('pointerdown', ({ target }) => {
    pressed = target;
  });
  dialog.addEventListener('click', ({ target }) => {
    // What is inside covers all of it.
    if (target === dialog && pressed === dialog) {
      dialog.close();
    }
  });
}
