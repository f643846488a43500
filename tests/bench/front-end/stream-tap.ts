/**
 * A script that runs in the page. It counts received messages that contain readings, and makes the
 * page request gpumon's samples at the measured interval.
 */

/** Counts and times of received samples. The peer's messages count as samples. */
export interface StreamCounts {
  samples: number;
  /**
   * The time at which the latest sample was complete. `gpu_at_ms` is the time at which the first
   * GPU of this sample was read.
   */
  at_ms: number;
  gpu_at_ms: number;
}

/**
 * Runs in the page before all other scripts. Only this function is sent to the page, so it uses
 * nothing outside of itself.
 */
export function tapStream(ask_ms: number | null): void {
  const tapped: StreamCounts = { samples: 0, at_ms: 0, gpu_at_ms: 0 };
  Object.assign(window, { gpumonTap: tapped });
  // Messages are compressed on the network, so they are counted where the page parses their text.
  const parse = JSON.parse;
  JSON.parse = (text: string, ...rest) => {
    const value = parse(text, ...rest) as unknown;
    // The page also parses values from the browser's storage. For a missing key, the storage
    // returns `null` instead of a text.
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
