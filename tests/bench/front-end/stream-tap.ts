/**
 * Listens to what a page is told of GPUs, and asks gpumon for samples as often as is to be
 * measured.
 */

/** What the tap has heard. The peer's messages count as samples. */
export interface Tapped {
  samples: number;
  /** When the sample that came last was complete, and when its first GPU was read. */
  at_ms: number;
  gpu_at_ms: number;
}

/** Runs in the page, before anything else; so it stands alone. */
export function tapStream(ask_ms: number | null): void {
  const tapped: Tapped = { samples: 0, at_ms: 0, gpu_at_ms: 0 };
  Object.assign(window, { gpumonTap: tapped });
  // What comes is compressed; what is parsed is what the page gets.
  const parse = JSON.parse;
  JSON.parse = (text: string, ...rest) => {
    const value = parse(text, ...rest) as unknown;
    // It may be `null`, which is what storage has where nothing is stored.
    if (typeof text === 'string' && text.startsWith('{"type":"sample"')) {
      const { at_ms, gpus } = value as { at_ms: number; gpus: { at_ms: number }[] };
      tapped.samples += 1;
      tapped.at_ms = at_ms;
      tapped.gpu_at_ms = gpus[0]?.at_ms ?? NaN;
    }
    return value;
  };
  const Native = window.WebSocket;
  window.WebSocket = class extends Native {
    constructor(url: string | URL, protocols?: string | string[]) {
      super(url, protocols);
      if (String(url).includes('/nvdashboard/')) {
        this.addEventListener('message', () => {
          tapped.samples += 1;
        });
      }
      if (!String(url).includes('/gpumon/api/v1/stream')) {
        return;
      }
      const send = this.send.bind(this);
      const interval = JSON.stringify({ type: 'interval', ms: ask_ms });
      this.send = (data) =>
        send(
          ask_ms !== null && typeof data === 'string' && data.includes('"type":"interval"')
            ? interval
            : data,
        );
      this.addEventListener('open', () => {
        if (ask_ms !== null) {
          send(interval);
        }
      });
    }
  };
}
