/** Puts the view into a page, and keeps it connected to a gpumon server. */

import { FrameLoop } from '../lib/frame-loop';
import { ReconnectingSocket, type SocketLike } from '../lib/socket';
import { Store, type Diagnosis } from '../model/store';
import type { ClientFrame, ServerFrame } from '../wire';
import { Overview } from './overview';

export interface MonitorOptions {
  /** Makes a connection to the server's stream. */
  openSocket: () => SocketLike;
  /** The heading. */
  title?: string;
  /** What to say until the first answer. */
  connectingMessage?: string;
  /** Finds out why there is no connection; asked after a failure. */
  diagnose?: () => Promise<Diagnosis | null>;
  /** Buttons for the head of the view. */
  actions?: readonly HTMLElement[];
}

export interface Monitor {
  /** Nobody sees the view, or somebody does again: draws nothing meanwhile, and asks the server to send nothing. */
  setVisible: (visible: boolean) => void;
  /** The colours around the view have changed. */
  themeChanged: () => void;
  /** Ends the connection and takes the view away; calling it again does nothing. */
  dispose: () => void;
}

/** Without frames, ages and countdowns still run. */
const TICK_MS = 1000;

/** Shows the GPUs of a server inside `host`. */
export function mountMonitor(host: HTMLElement, options: MonitorOptions): Monitor {
  const store = new Store();
  let visible = true;
  let looking = true;
  let disposed = false;
  let drawn_ms = 0;

  const overview = new Overview(store, {
    title: options.title ?? 'GPUs',
    connectingMessage: options.connectingMessage ?? 'Waiting for gpumon to answer.',
    actions: options.actions ?? [],
    invalidate: () => {
      loop.invalidate();
    },
    onRetry: () => {
      socket.retryNow();
    },
  });
  const loop: FrameLoop = new FrameLoop(() => {
    drawn_ms = performance.now();
    overview.render();
  });
  const tell = (frame: ClientFrame): void => {
    socket.send(JSON.stringify(frame));
  };
  const socket: ReconnectingSocket = new ReconnectingSocket({
    open: options.openSocket,
    onMessage: (text) => {
      const frame = parse(text);
      if (frame === null) {
        return;
      }
      store.apply(frame);
      if (frame.type === 'hello') {
        socket.settled();
        if (!looking) {
          tell({ type: 'pause' });
        }
      }
      loop.invalidate();
    },
    onPhase: (phase) => {
      store.phase = phase;
      loop.invalidate();
      if (phase.phase === 'waiting') {
        void explain();
      }
    },
  });

  async function explain(): Promise<void> {
    const diagnosis = (await options.diagnose?.().catch(() => null)) ?? null;
    if (store.phase.phase !== 'open') {
      store.diagnosis = diagnosis;
      loop.invalidate();
    }
  }

  const look = (): void => {
    const now = visible && !document.hidden;
    if (now === looking) {
      return;
    }
    looking = now;
    loop.setRunning(looking);
    if (looking) {
      store.resumed();
      socket.retryNow();
      tell({ type: 'resume' });
      loop.invalidate();
    } else {
      tell({ type: 'pause' });
    }
  };

  const ticker = setInterval(() => {
    if (performance.now() - drawn_ms > 0.9 * TICK_MS) {
      loop.invalidate();
    }
  }, TICK_MS);
  document.addEventListener('visibilitychange', look);
  host.append(overview.element);
  loop.setRunning(true);
  socket.start();
  look();
  loop.invalidate();

  return {
    setVisible: (now) => {
      visible = now;
      look();
    },
    themeChanged: () => {
      overview.themeChanged();
    },
    dispose: () => {
      if (disposed) {
        return;
      }
      disposed = true;
      clearInterval(ticker);
      document.removeEventListener('visibilitychange', look);
      loop.setRunning(false);
      socket.dispose();
      overview.dispose();
    },
  };
}

/** A frame, or `null` for what is none: one bad message is no reason to lose the view. */
function parse(text: string): ServerFrame | null {
  try {
    return JSON.parse(text) as ServerFrame;
  } catch {
    console.warn('gpumon: a message from the server is not JSON');
    return null;
  }
}
