import { readFileSync } from 'node:fs';

import { expect, it } from 'vitest';

import { CHART_IDS } from '../../static/src/model/dashboard/kinds';

interface Schema {
  properties: { charts: { items: { enum: string[] } } };
}

it('the setting for charts offers every chart that there is, in their order', () => {
  const file = new URL('../schema/plugin.json', import.meta.url);
  const { properties } = JSON.parse(readFileSync(file, 'utf8')) as Schema;
  expect(properties.charts.items.enum).toEqual(CHART_IDS);
});
