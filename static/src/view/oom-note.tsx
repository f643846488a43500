import { render } from 'preact';

import { createElement } from '../lib/dom';
import { trans } from '../lib/translation';
import type { OomDescription } from '../model/describe-oom';
import type { NotebookHost } from './notebook';

/** The explanation below a cell that ran out of GPU memory. It stays until the cell runs again. */
export class OomNote {
  readonly element = createElement('div', {
    class: 'gpumon-oom',
    'data-testid': 'gpumon-oom',
    role: 'status',
  });

  constructor(private readonly host: NotebookHost) {}

  update({ text, title, holders, notes }: OomDescription): void {
    render(
      <>
        <div>
          <span class="gpumon-oom-icon" aria-hidden="true">
            !
          </span>
          <span title={title}>{text}</span>
        </div>
        {holders.length > 0 && (
          <div>
            {trans.__('Held by')}
            <ul aria-label={trans.__('Processes that hold memory of this GPU')}>
              {holders.map(({ key, text, title, kernelId }) => (
                <li key={key}>
                  {kernelId === null ? (
                    <span title={title}>{text}</span>
                  ) : (
                    <button
                      type="button"
                      title={title}
                      aria-haspopup="menu"
                      onClick={({ currentTarget }) => this.host.openMenu(kernelId, currentTarget)}
                    >
                      {text}
                    </button>
                  )}
                </li>
              ))}
            </ul>
          </div>
        )}
        <div>{notes.join(' ')}</div>
      </>,
      this.element,
    );
  }
}
