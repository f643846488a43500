import { useMemo, useState } from 'preact/hooks';

import { formatCount, formatMemorySize } from '../../lib/format';
import { trans } from '../../lib/translation';
import { findFreeNodes, nearestNode, describeNearestNode } from '../../model/fleet/free';
import { removeVendorName } from '../../model/gpu';
import { makeWorstCell } from './rows';
import type { Scene } from './scene';
import { modelCell, nodeCell, Table, textCell } from './table';

const GIB = 1024 ** 3;

/** The search for nodes with enough free GPUs of a certain model and memory size. */
export function FreeView(scene: Scene) {
  const { columns, shown, matches, change, isNarrow } = scene;
  const { wanted } = shown;
  const found = useMemo(() => findFreeNodes(columns, wanted, matches), [columns, wanted, matches]);
  const unfiltered = matches === null ? found : findFreeNodes(columns, wanted, null);
  const nearest = found.length > 0 ? null : nearestNode(columns, wanted, matches);
  const most = columns.fleet.nodes.gpus.reduce((sum, gpus) => Math.max(sum, gpus), 0);
  const missing = columns.fleet.missing.processes;
  const set = (changes: Partial<typeof wanted>): void =>
    change({ wanted: { ...wanted, ...changes } });
  return (
    <div class="gpumon-free">
      <form class="gpumon-free-form" onSubmit={(event) => event.preventDefault()}>
        <label>
          <NumberField value={wanted.gpus} min={1} max={1024} onChange={(gpus) => set({ gpus })} />
          {trans.__('free GPUs')}
        </label>
        <select
          class="gpumon-fleet-select"
          aria-label={trans.__('Model')}
          data-testid="gpumon-fleet-model"
          value={wanted.model ?? ''}
          onChange={({ currentTarget: { value } }) => set({ model: value === '' ? null : value })}
        >
          <option value="">{trans.__('of any model')}</option>
          {[...new Set([...columns.models, ...(wanted.model === null ? [] : [wanted.model])])].map(
            (model) => (
              <option key={model} value={model}>
                {removeVendorName(model)}
              </option>
            ),
          )}
        </select>
        <label>
          {trans.__('with at least')}
          <NumberField
            value={Math.round(wanted.memory_bytes / GIB)}
            min={0}
            max={4096}
            onChange={(gib) => set({ memory_bytes: gib * GIB })}
          />
          {trans.__('GiB each on one node')}
        </label>
      </form>
      <p class="gpumon-free-answer" role="status" data-testid="gpumon-fleet-free">
        {wanted.gpus > most && most > 0
          ? trans._n(
              'No node has that many GPUs; the largest node has %1 GPU.',
              'No node has that many GPUs; the largest node has %2 GPUs.',
              most,
              formatCount(most),
            )
          : describeFreeNodes(found.length, unfiltered.length)}
      </p>
      {nearest !== null && (
        <p role="status" data-testid="gpumon-fleet-nearest">
          {trans.__('Nearest: %1', describeNearestNode(columns, nearest))}
        </p>
      )}
      {(!columns.byGpu || missing !== undefined) && (
        <p class="gpumon-fleet-note">
          {columns.byGpu
            ? trans.__(
                'Processes are unknown (%1): idle GPUs with less than 1 GiB in use count as free.',
                missing,
              )
            : trans.__(
                'This fleet only has readings per node: the GPUs of a node count as free if none of them is held.',
              )}
        </p>
      )}
      {(found.length > 0 || nearest !== null) && (
        <Table
          id="gpumon-fleet-free-nodes"
          name={trans.__('Nodes with free GPUs')}
          rows={nearest === null ? found : [nearest]}
          columns={[
            { label: trans.__('Node'), cell: ({ node }) => nodeCell(scene, node) },
            {
              label: trans.__('Free GPUs'),
              kind: 'number',
              width: 110,
              cell: ({ free, node }) =>
                trans.__(
                  '%1 of %2',
                  formatCount(free),
                  formatCount(columns.fleet.nodes.gpus[node] ?? free),
                ),
            },
            {
              label: trans.__('Worst state'),
              width: 230,
              cell: ({ node }) => makeWorstCell(scene, Array.from(columns.rowsOf(node)), true),
            },
            { label: trans.__('Model'), cell: ({ model }) => modelCell(model) },
            {
              label: trans.__('Memory per GPU'),
              kind: 'number',
              width: 130,
              cell: ({ memory_bytes }) =>
                textCell(Number.isNaN(memory_bytes) ? null : formatMemorySize(memory_bytes)),
            },
            {
              label: trans.__('Indices'),
              cell: ({ rows }) =>
                columns.byGpu ? rows.map((row) => columns.index[row] ?? 0).join(', ') : '',
            },
          ]}
          isNarrow={isNarrow}
        />
      )}
    </div>
  );
}

/** A field for a whole number. The text does not change while the user is typing. */
function NumberField({
  value,
  min,
  max,
  onChange,
}: {
  value: number;
  min: number;
  max: number;
  onChange: (value: number) => void;
}) {
  const [typed, setTyped] = useState<{ text: string; isValid: boolean } | null>(null);
  return (
    <input
      type="number"
      min={min}
      max={max}
      step={1}
      required
      inputMode="numeric"
      aria-invalid={typed?.isValid === false || undefined}
      value={typed?.text ?? String(value)}
      onInput={({ currentTarget }) => {
        const isValid = currentTarget.checkValidity();
        setTyped({ text: currentTarget.value, isValid });
        if (isValid) {
          onChange(Number(currentTarget.value));
        }
      }}
      onBlur={() => setTyped(null)}
    />
  );
}

/**
 * Describes how many nodes have enough free GPUs. `found` counts only nodes that match the filter,
 * and `unfiltered` counts all.
 */
function describeFreeNodes(found: number, unfiltered: number): string {
  if (found > 0) {
    return trans._n(
      '%1 node has these GPUs free.',
      '%2 nodes have these GPUs free. Healthy nodes and the tightest fit are listed first.',
      found,
      formatCount(found),
    );
  }
  return unfiltered === 0
    ? trans.__('No node has these GPUs free.')
    : trans._n(
        'No node that matches the filter has these GPUs free. Without the filter, %1 node has them.',
        'No node that matches the filter has these GPUs free. Without the filter, %2 nodes have them.',
        unfiltered,
        formatCount(unfiltered),
      );
}
