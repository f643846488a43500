/** Finds free GPUs: so many with so much memory on one node. */

import { h, setAttribute, setShown, setText } from '../../lib/dom';
import { count, memorySize } from '../../lib/format';
import { trans } from '../../lib/translation';
import { remembered } from '../../lib/remembered';
import type { Columns } from '../../model/fleet/columns';
import { freeNodes, freeOf, type FreeNode, type Wanted } from '../../model/fleet/free';
import type { NodeLinks } from './node-link';
import { writeModel, writeNode, writeText } from './table/cells';
import { Table } from './table/table';

const GIB = 1024 ** 3;

interface Row {
  columns: Columns;
  found: FreeNode;
}

export class FreeView {
  readonly element: HTMLElement;
  private readonly gpus = number('1', '1024');
  private readonly memory = number('0', '4096');
  private readonly answer = h('p', {
    class: 'gpumon-free-answer',
    role: 'status',
    'data-testid': 'gpumon-fleet-free',
  });
  private readonly note = h('p', { class: 'gpumon-fleet-note' });
  private readonly table: Table<Row, never>;
  private readonly found = remembered(freeNodes);

  constructor(
    links: NodeLinks,
    private readonly change: (wanted: Wanted) => void,
  ) {
    this.table = new Table<Row, never>({
      id: 'gpumon-fleet-free-nodes',
      name: trans.__('Nodes with free GPUs'),
      columns: [
        {
          label: trans.__('Node'),
          kind: 'name',
          write: (cell, { columns, found }) => writeNode(cell, links, columns, found.node),
        },
        {
          label: trans.__('Free GPUs'),
          kind: 'number',
          width: 110,
          narrow: 76,
          write: (cell, { columns, found }) =>
            setText(
              cell,
              trans.__(
                '%1 of %2',
                freeOf(columns, found),
                columns.fleet.nodes.gpus[found.node] ?? found.of,
              ),
            ),
        },
        {
          label: trans.__('Indices'),
          kind: 'text',
          wide: true,
          write: (cell, { columns, found }) =>
            writeText(
              cell,
              columns.byGpu ? found.rows.map((row) => columns.index[row] ?? 0).join(', ') : '',
            ),
        },
        {
          label: trans.__('Model'),
          kind: 'text',
          write: (cell, { found }) => writeModel(cell, found.model),
        },
        {
          label: trans.__('Memory of each'),
          kind: 'number',
          width: 130,
          narrow: 100,
          write: (cell, { found }) =>
            writeText(
              cell,
              Number.isNaN(found.memory_bytes) ? null : memorySize(found.memory_bytes),
            ),
        },
      ],
    });
    for (const input of [this.gpus, this.memory]) {
      input.addEventListener('input', () => this.onInput());
    }
    this.element = h(
      'div',
      { class: 'gpumon-free' },
      h(
        'form',
        { class: 'gpumon-free-form' },
        h('label', {}, this.gpus, h('span', {}, trans.__('free GPUs'))),
        h(
          'label',
          {},
          h('span', {}, trans.__('with at least')),
          this.memory,
          h('span', {}, trans.__('GiB each')),
        ),
        h('span', {}, trans.__('on one node')),
      ),
      this.answer,
      this.note,
      this.table.element,
    );
    this.element
      .querySelector('form')
      ?.addEventListener('submit', (event) => event.preventDefault());
  }

  update(columns: Columns, wanted: Wanted, shown: Uint8Array | null): void {
    write(this.gpus, wanted.gpus);
    write(this.memory, Math.round(wanted.memory_bytes / GIB));
    const found = this.found(columns, wanted, shown);
    setText(
      this.answer,
      answerText(found.length, shown === null ? 0 : freeNodes(columns, wanted, null).length),
    );
    setShown(this.table.element, found.length > 0);
    const missing = columns.fleet.missing.processes;
    setText(
      this.note,
      !columns.byGpu
        ? trans.__('This fleet is told by node: nodes are counted on which no GPU is held.')
        : missing === undefined
          ? ''
          : trans.__(
              'Processes are not told (%1): a GPU is taken for free that is idle, with less than 1 GiB in use.',
              missing,
            ),
    );
    setShown(this.note, this.note.textContent !== '');
    this.table.update({
      count: found.length,
      rowAt: (place) => {
        const one = found[place];
        return one === undefined ? one : { columns, found: one };
      },
    });
  }

  dispose(): void {
    this.table.dispose();
  }

  private onInput(): void {
    const { gpus, memory } = this;
    const isValid = gpus.checkValidity() && memory.checkValidity();
    for (const input of [gpus, memory]) {
      setAttribute(input, 'aria-invalid', input.checkValidity() ? null : 'true');
    }
    if (isValid && gpus.value !== '' && memory.value !== '') {
      this.change({ gpus: Number(gpus.value), memory_bytes: Number(memory.value) * GIB });
    }
  }
}

function number(min: string, max: string): HTMLInputElement {
  return h('input', { type: 'number', min, max, step: '1', required: '', inputmode: 'numeric' });
}

/** What somebody is typing is left alone. */
function write(input: HTMLInputElement, value: number): void {
  if (document.activeElement !== input && input.value !== String(value)) {
    input.value = String(value);
  }
}

/** Describes how many nodes have the GPUs free. `unfiltered` is the number without the filter. */
function answerText(found: number, unfiltered: number): string {
  if (found > 0) {
    return trans._n(
      '%1 node has them free, the tightest fit first.',
      '%2 nodes have them free, the tightest fit first.',
      found,
      count(found),
    );
  }
  return unfiltered === 0
    ? trans.__('No node has them free.')
    : trans._n(
        'No node that matches the filter has them free; %1 node has without the filter.',
        'No node that matches the filter has them free; %2 nodes have without the filter.',
        unfiltered,
        count(unfiltered),
      );
}
