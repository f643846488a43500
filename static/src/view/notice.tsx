import type { ComponentChild } from 'preact';

import type { Status } from '../model/status';
import type { Diagnosis } from '../model/store';

/** A notice that explains a problem and how to fix it. */
export function Notice({
  notice,
  level,
}: {
  notice: Diagnosis | null;
  level: Status['level'];
}): ComponentChild {
  return (
    <section
      class="gpumon-notice"
      data-testid="gpumon-notice"
      hidden={notice === null}
      data-level={level}
    >
      <h2>{notice?.title}</h2>
      <p>{notice?.message}</p>
      {notice?.command !== undefined && (
        <pre class="gpumon-command" tabIndex={0}>
          {notice.command}
        </pre>
      )}
    </section>
  );
}
