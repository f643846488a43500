import type { ComponentChild } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';

import { trans } from '../lib/translation';

/** Awaits an `import()`. Its error names the cure: after an update, the server has other files. */
export async function loadPart<T>(loading: Promise<T>): Promise<T> {
  try {
    return await loading;
  } catch (error) {
    console.error('gpumon: a part of it cannot be loaded', error);
    throw new Error(trans.__('This part of gpumon cannot be loaded. Reload the page.'), {
      cause: error,
    });
  }
}

/** A message in place of a part that could not be loaded. */
export function FailedPart({ error }: { error: unknown }): ComponentChild {
  return (
    <p class="gpumon-empty" role="alert">
      {error instanceof Error ? error.message : String(error)}
    </p>
  );
}

export interface PartProps<T> {
  load: () => Promise<T>;
  children: (part: T) => ComponentChild;
  /** Called if the module cannot be loaded. */
  onFailure?: () => void;
}

/** A part of the view whose module is loaded when the part is first rendered. */
export function Part<T>({ load, children, onFailure }: PartProps<T>): ComponentChild {
  const [loaded, setLoaded] = useState<{ part: T } | { error: unknown } | null>(null);
  useLayoutEffect(() => {
    let isThere = true;
    const show = (result: { part: T } | { error: unknown }): void => {
      if (isThere) {
        setLoaded(result);
      }
    };
    loadPart(load()).then(
      (module) => show({ part: module }),
      (error: unknown) => {
        show({ error });
        onFailure?.();
      },
    );
    return () => {
      isThere = false;
    };
  }, []);
  if (loaded === null) {
    return null;
  }
  return 'error' in loaded ? <FailedPart error={loaded.error} /> : children(loaded.part);
}
