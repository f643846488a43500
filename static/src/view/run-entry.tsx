import type { ComponentChild } from 'preact';
import { useRef } from 'preact/hooks';

import type { GpuState } from '../model/gpu';
import type { Request } from '../model/request';
import type { Store } from '../model/store';
import { Part } from './part';
import type { Freshness } from './value';

/** The interface to run benchmarks on a server. */
export interface Runner {
  request: Request;
  /** Sets whether the server sends the states of runs. */
  setRuns: (on: boolean) => void;
}

export interface RunEntryProps {
  store: Store;
  runner: Runner;
  gpus: readonly GpuState[];
  freshness: Freshness;
  isOpen: boolean;
  onClose: () => void;
}

/**
 * The benchmark dialog. Its code is loaded when it is first opened, and it keeps its state while it
 * is closed.
 */
export function RunEntry(props: RunEntryProps): ComponentChild {
  const wasOpened = useRef(false);
  wasOpened.current ||= props.isOpen;
  return (
    wasOpened.current && (
      <Part load={() => import('./runs/dialog')}>
        {({ RunDialog }) => <RunDialog {...props} />}
      </Part>
    )
  );
}
