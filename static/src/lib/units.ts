/** The units that this page writes memory and temperatures in. */

export interface Units {
  memory: 'GiB' | 'GB';
  temperature: '°C' | '°F';
}

let chosen: Readonly<Units> = { memory: 'GiB', temperature: '°C' };

/** From now on, numbers are written so; whatever shows some has to be drawn anew. */
export function chooseUnits(units: Units): void {
  chosen = units;
}

export function units(): Readonly<Units> {
  return chosen;
}

export function memoryUnitBytes(): number {
  return chosen.memory === 'GiB' ? 1024 ** 3 : 1e9;
}
