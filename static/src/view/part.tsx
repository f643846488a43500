import type { ComponentChild } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';

import { trans } from '../lib/translation';

/**
 * Awaits an `import()`. If it fails, the error message asks the user to reload the page, because
 * the server's files may have changed with an update.
 */
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

/** A message that replaces a part that could not be loaded. */
export function FailedPart({
  error,
  onRetry,
}: {
  error: unknown;
  /** Loads the part again. If it is missing, there is no button. */
  onRetry?: () => void;
}) {
  return (
    <p class="gpumon-empty" role="alert">
      {error instanceof Error ? error.message : String(error)}{' '}
      {onRetry !== undefined && (
        <button type="button" class="gpumon-chip" onClick={onRetry}>
          {trans.__('Try again')}
        </button>
      )}
    </p>
  );
}

/** A part of the view whose module is loaded when the part is first rendered. */
export function Part<T>({
  load,
  children,
}: {
  load: () => Promise<T>;
  children: (part: T) => ComponentChild;
}) {
  const [attempt, setAttempt] = useState(0);
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
      (error: unknown) => show({ error }),
    );
    return () => {
      isThere = false;
    };
  }, [attempt]);
  if (loaded === null) {
    return null;
  }
  return 'error' in loaded ? (
    <FailedPart error={loaded.error} onRetry={() => setAttempt(attempt + 1)} />
  ) : (
    children(loaded.part)
  );
}
