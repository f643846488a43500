/** The units in which this page displays memory and temperatures. */

export interface Units {
  memory: 'GiB' | 'GB';
  temperature: '°C' | '°F';
}

let chosen: Readonly<Units> = { memory: 'GiB', temperature: '°C' };

/** Sets the units. Views that show values must be redrawn. */
export function chooseUnits(units: Units): void {
  chosen = units;
}

export function units(): Readonly<Units> {
  return chosen;
}

export function memoryUnitBytes(): number {
  return chosen.memory === 'GiB' ? 1024 ** 3 : 1e9;
}
