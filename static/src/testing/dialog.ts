/** Replacements for the methods of modal dialogs and of scrolling that jsdom lacks. */
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
