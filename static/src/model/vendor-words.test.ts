import { expect, it } from 'vitest';

import type { Vendor } from '../wire';
import { vendorWordsOf } from './vendor-words';

function wordsFor(...vendors: string[]): string[] {
  const all = vendorWordsOf(...vendors.map((vendor) => ({ vendor: vendor as Vendor })));
  const instance = { gpu_instance: 3, compute_instance: 0 };
  return [all.link, all.countLinks(7), all.partitions, all.partition(instance), all.countUnits(38)];
}

const COMMON = ['GPU link', '7 GPU links', 'Partitions', 'partition 3', '38 cores'];

it('GPUs of one vendor have its terms', () => {
  expect(wordsFor('nvidia', 'nvidia')).toEqual([
    'NVLink',
    '7 NVLinks',
    'MIG devices',
    'MIG 3/0',
    '38 SMs',
  ]);
  expect(wordsFor('amd')).toEqual(['XGMI', '7 XGMI links', 'Partitions', 'partition 3', '38 CUs']);
  expect(wordsFor('intel').slice(0, 2)).toEqual(['Xe Link', '7 Xe Links']);
});

it('GPUs of several vendors have neutral terms', () =>
  expect(wordsFor('nvidia', 'amd')).toEqual(COMMON));

it('unknown vendor has neutral terms', () => expect(wordsFor('constructor')).toEqual(COMMON));
