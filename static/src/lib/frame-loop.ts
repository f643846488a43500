/** At most one drawing per frame of the screen, and none while nobody looks. */
export class FrameLoop {
  private requested = 0;
  private dirty = false;
  private running = false;

  constructor(private readonly draw: () => void) {}

  /** Something has changed. */
  invalidate(): void {
    this.dirty = true;
    if (this.running && this.requested === 0) {
      this.requested = requestAnimationFrame(() => {
        this.requested = 0;
        this.dirty = false;
        this.draw();
      });
    }
  }

  /** Starts or stops drawing; what changed meanwhile is drawn at the start. */
  setRunning(running: boolean): void {
    this.running = running;
    if (running) {
      if (this.dirty) {
        this.invalidate();
      }
    } else {
      cancelAnimationFrame(this.requested);
      this.requested = 0;
    }
  }
}
