/** The owner of a process as text. */

import { plainText } from '../lib/text';
import { trans } from '../lib/translation';
import type { MigInstance, Pod, Process } from '../wire';
import { valueOf } from './reading';

/** The file name of the notebook whose kernel it is, or whose kernel started it; `null` where there is none. */
export function notebookName(process: Process): string | null {
  const notebook = valueOf(process.owner)?.notebook;
  const path = valueOf(notebook?.path);
  return path === null ? null : plainText(path.split('/').at(-1) ?? path, 120);
}

/** The job, pod, container or service it runs in, the most telling of them; `null` where there is none. */
export function runsIn(process: Process): string | null {
  const { slurm, pod, container, unit } = valueOf(process.owner) ?? {};
  const text =
    (slurm && trans.__('slurm %1', slurm.job_id)) ??
    (pod && trans.__('pod %1', podName(pod))) ??
    (container && trans.__('container %1', container.name ?? container.id.slice(0, 12))) ??
    unit;
  return text === undefined ? null : plainText(text, 60);
}

/** Its name with its namespace, or its UID where they are not known. */
function podName({ uid, namespace, name }: Pod): string {
  return namespace === undefined || name === undefined ? uid : `${namespace}/${name}`;
}

/** The part of a GPU, as nvidia-smi writes it: GPU instance, then compute instance. */
export function migName(instance: MigInstance): string {
  return `MIG ${instance.gpu_instance}/${instance.compute_instance}`;
}

/** How it shares its GPU: in which MIG instance it runs, and whether MPS mixes it with others; empty where neither. */
export function sharedBy(process: Process): string[] {
  return [...(process.mig === undefined ? [] : [migName(process.mig)]), ...(process.mps ? ['MPS'] : [])];
}
