/** What cells of tables show. */

import type { ComponentChild } from 'preact';

import { DASH } from '../../../lib/format';
import { trans } from '../../../lib/translation';
import type { Level } from '../../../model/describe';
import { conditionText, conditionTitle, levelOf } from '../../../model/fleet/describe';
import { withoutVendor } from '../../../model/gpu';
import { SeverityIcon, severityLabel } from '../../severity-icon';
import { closedReason, Name, NodeLink, type Scene } from '../scene';
import type { Cell } from './table';

/** A text, or a dash with the reason for its absence. */
export function textCell(text: string | null, missing?: string): Cell {
  return text === null
    ? { content: DASH, title: missing ?? trans.__('no reading') }
    : { content: text, title: text.length > 20 ? text : undefined };
}

/** The name of a GPU without its vendor. */
export function modelCell(model: string | null, before = ''): Cell {
  return model === null
    ? textCell(null)
    : { content: `${before}${withoutVendor(model)}`, title: model };
}

/** The name of a node as a link, if the node can be opened. */
export function nodeCell(scene: Scene, node: number, rest = ''): Cell {
  const text = scene.columns.nodeNames[node] ?? '';
  const reason = closedReason(scene.columns, node);
  const name = <Name text={text} rest={rest} />;
  return reason === null
    ? {
        content: (
          <NodeLink scene={scene} node={node} class="gpumon-table-node">
            {name}
          </NodeLink>
        ),
        title: text,
      }
    : { content: name, title: trans.__('Cannot be opened: %1', reason) };
}

/** A state with the icon of its level. */
export function stateCell(text: string, level: Level, title = ''): Cell {
  return { content: <State text={text} level={level} />, level, title: title || text };
}

/** A condition with the icon of its level, and its explanation on hover. */
export function conditionCell({ kind, severity }: { kind: string; severity: number }): Cell {
  return stateCell(conditionText(kind), levelOf(severity), conditionTitle(kind));
}

export function State({ text, level }: { text: string; level: string }): ComponentChild {
  return (
    <>
      <SeverityIcon />
      <span class="gpumon-visually-hidden">{severityLabel(level)}</span>
      <span>{text}</span>
    </>
  );
}

/** A value after a bar of its share; NaN has no bar. */
export function meterCell(text: string, share: number, color: string, title?: string): Cell {
  return {
    content: (
      <span class="gpumon-table-measured">
        <Meter share={share} color={color} />
        <span>{text}</span>
      </span>
    ),
    title,
  };
}

/** A bar of a share from 0 to 1; NaN leaves only its room. */
export function Meter({ share, color }: { share: number; color: string }): ComponentChild {
  const isEmpty = Number.isNaN(share);
  return (
    <span class="gpumon-fleet-meter" aria-hidden="true" data-empty={isEmpty || undefined}>
      <span
        style={{
          width: isEmpty ? '0' : `${Math.round(Math.min(1, share) * 100)}%`,
          '--_color': `var(--gpumon-${color})`,
        }}
      />
    </span>
  );
}
