/** Texts about the owner of a process. */

import { plainText } from '../lib/text';
import { trans } from '../lib/translation';
import type { Allocation, GpuSample, MigInstance, Pod, Process, Vendor } from '../wire';
import { notebookNames } from './notebooks';
import { valueOf } from './reading';
import { vendorWordsOf } from './vendor-words';

/**
 * Returns the path of the notebook whose kernel is the process or started the process, or `null` if
 * the process belongs to no notebook.
 */
export function notebookPath(process: Process): string | null {
  return valueOf(valueOf(process.owner)?.notebook?.path);
}

/**
 * Returns the name of the process's notebook. `names` contains distinct names for all displayed
 * paths.
 */
export function notebookName(process: Process, names?: ReadonlyMap<string, string>): string | null {
  const path = notebookPath(process);
  return path === null ? null : plainText((names ?? notebookNames([path])).get(path) ?? path, 120);
}

/**
 * Returns the job, pod, container or service of a process, in this order of preference, or `null`
 * if it has none of them.
 */
export function describeOwner(process: Process): string | null {
  const { slurm, pbs, lsf, pod, container, unit } = valueOf(process.owner) ?? {};
  const text =
    (slurm && trans.__('slurm %1', slurm.job_id)) ??
    (pbs && trans.__('pbs %1', pbs.job_id)) ??
    (lsf && trans.__('lsf %1', lsf.job_id)) ??
    (pod && trans.__('pod %1', podName(pod))) ??
    (container && trans.__('container %1', container.name ?? container.id.slice(0, 12))) ??
    unit;
  return text === undefined ? null : plainText(text, 60);
}

/** Returns the namespace and name of a pod, or its UID if they are unknown. */
function podName({ uid, namespace, name }: Pod): string {
  return namespace === undefined || name === undefined ? uid : `${namespace}/${name}`;
}

/**
 * Returns the owners to whom a GPU or its MIG devices are allocated although no process is running
 * there.
 */
export function unusedAllocations(gpu: GpuSample): string[] {
  const processes = valueOf(gpu.processes);
  if (processes === null) {
    return [];
  }
  const isFree = (part: MigInstance | undefined): boolean =>
    !processes.some(
      ({ mig }) =>
        part === undefined || (mig !== undefined && instanceKey(mig) === instanceKey(part)),
    );
  const parts: { part?: MigInstance; to: readonly Allocation[] | undefined }[] = [
    { to: gpu.allocated_to },
    ...(valueOf(gpu.mig_devices) ?? []).map((mig) => ({ part: mig, to: mig.allocated_to })),
  ];
  const unused = parts.filter(({ part }) => isFree(part)).flatMap(({ to }) => to ?? []);
  return [...new Set(unused.map(allocationName))];
}

/** Returns the job or pod of an allocation, with the user if it is known. */
function allocationName(to: Allocation): string {
  const text =
    to.by === 'slurm'
      ? trans.__('slurm %1', to.user === undefined ? to.job_id : `${to.job_id} (${to.user})`)
      : trans.__('pod %1', `${to.namespace}/${to.pod}`);
  return plainText(text, 120);
}

/** Returns the key of a partition, which is unique within its GPU. */
export function instanceKey({ gpu_instance, compute_instance }: MigInstance): string {
  return `${gpu_instance}/${compute_instance}`;
}

/** Returns the partition of a process, and `MPS` if it shares the GPU through MPS. */
export function describeSharing(process: Process, vendor: Vendor): string[] {
  return [
    ...(process.mig === undefined ? [] : [vendorWordsOf({ vendor }).partition(process.mig)]),
    ...(process.mps ? ['MPS'] : []),
  ];
}
