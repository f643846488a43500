// @vitest-environment jsdom

import { DefaultSchemaValidator, type ISettingRegistry } from '@jupyterlab/settingregistry';
import { expect, it, vi } from 'vitest';

import schema from '../schema/plugin.json';
import { applySettingsOnChange } from './settings';

it('defaults apply if settings cannot be read', async () => {
  const apply = vi.fn();
  await applySettingsOnChange(null, 'gpumon:plugin', apply);
  const entries = Object.entries(schema.properties);
  const defaults = entries.map(([name, setting]) => [name, setting.default]);
  expect(apply).toHaveBeenLastCalledWith(Object.fromEntries(defaults));
});

it('settings of 0.2.0 are valid', () => {
  const user = {
    cellLine: false,
    storeCosts: true,
    notebookUse: false,
    memoryWarnings: false,
    alertNotifications: false,
    accelerators: false,
    interval: 0.5,
    spanMinutes: 15,
    charts: ['Activity', 'NVLink', 'MIG devices', 'temperature.gpu_celsius', 'Fan'],
    memoryUnit: 'GB',
    temperatureUnit: '°F',
    warnMinutes: 10,
  };
  const errors = new DefaultSchemaValidator().validateData({
    id: 'gpumon:plugin',
    raw: JSON.stringify(user),
    schema: schema as unknown as ISettingRegistry.ISchema,
    version: '0.2.0',
    data: { composite: {}, user: {} },
  });
  expect(errors).toBeNull();
});
