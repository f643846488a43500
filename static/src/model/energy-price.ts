/** The cost of energy, if the server reports a price. */

import { formatDecimal } from '../lib/format';
import type { EnergyPrice } from '../wire';
import { formatLowerBound } from './fleet/metric';

const KWH_JOULES = 3.6e6;

let price: EnergyPrice | null = null;

/** Sets the price for all energy costs; `null` if it is unknown. */
export function setEnergyPrice(next: EnergyPrice | null): void {
  price = next;
}

/** Returns a cost such as `0.42 EUR`, or `null` if the price is unknown. */
export function energyCost(joules: number): string | null {
  if (price === null || !Number.isFinite(joules)) {
    return null;
  }
  const { per_kwh, before, after } = price;
  const text = costNumber((joules / KWH_JOULES) * per_kwh);
  return before === '' && after === '' ? `cost ${text}` : `${before}${text}${after}`;
}

/** Returns text such as `6.10 kJ (0.42 EUR)`, or only the amount if the price is unknown. */
export function withCost(amount: string, joules: number, isLowerBound = false): string {
  const cost = energyCost(joules);
  return cost === null ? amount : `${amount} (${formatLowerBound(cost, isLowerBound)})`;
}

function costNumber(cost: number): string {
  if (cost > 0 && cost < 0.0001) {
    return `<${formatDecimal(0.0001, 4)}`;
  }
  return formatDecimal(cost, cost === 0 || cost >= 0.1 ? 2 : cost >= 0.001 ? 3 : 4);
}
