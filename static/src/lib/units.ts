/** The units that this page writes memory and temperatures in. */

export interface Units {
  memory: 'GiB' | 'GB';
  temperature: '°C' | '°F';
}

const chosen: Units = { memory: 'GiB', temperature: '°C' };

/** From now on, numbers are written so; whatever shows some has to be drawn anew. */
export function chooseUnits(units: Units): void {
  Object.assign(chosen, units);
}

export function units(): Readonly<Units> {
  return chosen;
}

export function memoryUnitBytes(): number {
  return chosen.memory === 'GiB' ? 1024 ** 3 : 1e9;
}
