import type { ComponentChild } from 'preact';
import { useRef } from 'preact/hooks';

import type { GpuState } from '../model/gpu';
import type { Request } from '../model/request';
import type { Store } from '../model/store';
import { Part } from './part';
import type { Freshness } from './value';

/** Runs benchmarks on a server. */
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

/** The dialog of benchmarks. It is loaded when it first opens, and keeps its
 * state while closed. If that fails, the next opening loads it again. */
export function RunEntry(props: RunEntryProps): ComponentChild {
  const { isOpen, onClose } = props;
  const wasOpen = useRef(false);
  const attempts = useRef(0);
  const hasFailed = useRef(false);
  if (isOpen && !wasOpen.current && (attempts.current === 0 || hasFailed.current)) {
    attempts.current += 1;
    hasFailed.current = false;
  }
  wasOpen.current = isOpen;
  const onFailure = (): void => {
    hasFailed.current = true;
    onClose();
  };
  return (
    attempts.current > 0 && (
      <Part key={attempts.current} load={() => import('./runs/dialog')} onFailure={onFailure}>
        {({ RunDialog }) => <RunDialog {...props} />}
      </Part>
    )
  );
}
