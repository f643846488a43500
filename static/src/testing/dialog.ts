/** Replacements for methods that jsdom lacks: those of modal dialogs and of scrolling. */
Object.assign(HTMLDialogElement.prototype, {
  showModal(this: HTMLDialogElement) {
    this.open = true;
  },
  close(this: HTMLDialogElement) {
    this.open = false;
    this.dispatchEvent(new Event('close'));
  },
});
HTMLElement.prototype.scrollIntoView = () => undefined;
