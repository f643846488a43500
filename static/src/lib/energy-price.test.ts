import { describe, expect, test } from 'vitest';

import { energyCost, setEnergyPrice, appendEnergyCost } from './format';

describe('energy cost', () => {
  test('cost is missing without a price', () => {
    expect(energyCost(3.6e6)).toBeNull();
    expect(appendEnergyCost('1.00 kWh', 3.6e6)).toBe('1.00 kWh');
  });

  test('cost has the configured currency', () => {
    setEnergyPrice({ per_kwh: 0.3, before: '', after: ' EUR' });
    expect([0, 5, 6_100, 1e5, 5.04e6, NaN].map(energyCost)).toEqual([
      '0.00 EUR',
      '<0.0001 EUR',
      '0.0005 EUR',
      '0.008 EUR',
      '0.42 EUR',
      null,
    ]);
    setEnergyPrice({ per_kwh: 0.3, before: '$', after: '' });
    expect(appendEnergyCost('1.40 kWh', 5.04e6)).toBe('1.40 kWh ($0.42)');
    setEnergyPrice({ per_kwh: 0.3, before: '', after: '' });
    expect(energyCost(5.04e6)).toBe('cost 0.42');
  });
});
