import { describe, expect, it } from 'vitest';

import { makeProcess } from '../testing/frames';
import type { Owner } from '../wire';
import { notebookName, describeOwner, describeSharing } from './owner';
import { processName } from './holders';

const owned = (owner: Partial<Owner>) => makeProcess(7, { owner: { parents: [], ...owner } });
const notebook = { kernel_id: 'ab12', kernel_pid: 7, path: '/home/ana/train.ipynb' };

describe('process texts', () => {
  it('notebook name has priority over process name', () => {
    expect(notebookName(owned({ notebook }))).toBe('train.ipynb');
    expect(processName(owned({ notebook }))).toBe('train.ipynb');
    expect(
      notebookName(owned({ notebook: { ...notebook, path: { absent: 'hidden' } } })),
    ).toBeNull();
    expect(processName(owned({}))).toBe('python3');
    expect(processName(makeProcess(7, { owner: { absent: 'unknown' } }))).toBe('python3');
  });

  it('most specific owner is shown', () => {
    const container = { runtime: 'docker', id: '0123456789abcdef'.repeat(4) } as const;
    expect(describeOwner(owned({ slurm: { job_id: '88123' }, container }))).toBe('slurm 88123');
    expect(describeOwner(owned({ pbs: { job_id: '88123.server' }, container }))).toBe(
      'pbs 88123.server',
    );
    expect(describeOwner(owned({ lsf: { job_id: '88123[7]' }, container }))).toBe('lsf 88123[7]');
    expect(describeOwner(owned({ pod: { uid: '1111-2222' }, container }))).toBe('pod 1111-2222');
    const pod = { uid: '1111-2222', namespace: 'research', name: 'train-0' };
    expect(describeOwner(owned({ pod, container }))).toBe('pod research/train-0');
    const named = { ...container, name: 'trainer' };
    expect(describeOwner(owned({ container: named }))).toBe('container trainer');
    expect(describeOwner(owned({ container, unit: 'docker.service' }))).toBe(
      'container 0123456789ab',
    );
    expect(describeOwner(owned({ unit: 'ollama.service' }))).toBe('ollama.service');
    expect(describeOwner(owned({}))).toBeNull();
  });

  it('process shows its MIG device and MPS', () => {
    expect(describeSharing(makeProcess(7), 'nvidia')).toEqual([]);
    const divided = makeProcess(7, { mps: true, mig: { gpu_instance: 9, compute_instance: 1 } });
    expect(describeSharing(divided, 'nvidia')).toEqual(['MIG 9/1', 'MPS']);
    expect(describeSharing(divided, 'amd')).toEqual(['partition 9', 'MPS']);
  });
});
