/**
 * Four tasks of a user in a newly opened JupyterLab, measured in clicks and in seconds that the
 * machine takes.
 */

import { writeFileSync } from 'node:fs';

import type { Locator, Page } from 'playwright-core';

import { JupyterServer } from '../../../browser/src/jupyter';
import { newScenario, makeFakeEnvironment } from '../../../browser/src/machine';
import { notebookOf } from '../../../browser/src/notebook-file';
import { Worker } from '../../../browser/src/worker';
import { formatNumber, sleep } from '../figures';
import { OpenLab, PEER } from '../lab';
import { printNote, printRow } from '../rows';
import type { Bench } from './bench';

/**
 * The time in seconds that a person needs to point and click in the keystroke-level model, after
 * thinking for `THINK_S`.
 */
const CLICK_S = 1.1;
const THINK_S = 1.35;
/** The duration of the run in the task that compares power, in seconds. */
const RUN_S = 15;
/**
 * The start and end of the run in a chart of two minutes, as fractions of the chart's width. The
 * end is not at the right edge, because some time has passed since the run ended.
 */
const RUN_AT: [from: number, to: number] = [0.6, 0.75];
const HOLDER = 'train.ipynb';

/** A user who works on one task. The time starts when the object is created. */
class Person {
  private clicks = 0;
  private readonly from_ms = performance.now();

  constructor(readonly page: Page) {}

  async click(what: Locator): Promise<void> {
    this.clicks += 1;
    await what.click();
  }

  async dragAcross(chart: Locator, from: number, to: number): Promise<void> {
    this.clicks += 1;
    const box = await chart.boundingBox();
    if (box === null) {
      throw new Error('the chart is not shown');
    }
    const at = (share: number): [number, number] => [
      box.x + box.width * share,
      box.y + box.height / 2,
    ];
    await this.page.mouse.move(...at(from));
    await this.page.mouse.down();
    await this.page.mouse.move(...at(to), { steps: 5 });
    await this.page.mouse.up();
  }

  /** Waits until an element is visible without scrolling. */
  async waitUntilVisible(what: Locator): Promise<void> {
    await what.waitFor();
    await this.page.waitForFunction(
      (element) => {
        const { height, top, bottom } = element.getBoundingClientRect();
        return height > 0 && top >= 0 && bottom <= innerHeight;
      },
      await what.elementHandle(),
    );
  }

  /**
   * Returns the number of clicks, the seconds that the machine took, and the seconds that a person
   * would take in total.
   */
  summary(): string {
    const machine_s = (performance.now() - this.from_ms) / 1000;
    const person_s = this.clicks * (CLICK_S + THINK_S) + machine_s;
    return `${this.clicks} clicks, ${formatNumber(machine_s)} s of the machine, ${formatNumber(person_s)} s of a person`;
  }
}

const panelTab = (page: Page): Locator => page.locator('[data-id="gpumon-panel"]');

const TASKS: Record<string, (person: Person) => Promise<void>> = {
  "which notebook holds GPU 2's memory": async (person) => {
    await person.click(panelTab(person.page));
    await person.waitUntilVisible(notebookRow(person.page, 2).filter({ hasText: '60.0' }));
  },
  'compare power of 8 GPUs over the last run': async (person) => {
    await person.click(panelTab(person.page));
    await person.click(person.page.getByTestId('gpumon-charts'));
    const power = person.page.locator('[data-plot="all power.draw_watts"]');
    await person.waitUntilVisible(
      power.locator('.gpumon-readouts > button', { hasText: '665' }).last(),
    );
    await person.dragAcross(power.locator('canvas').first(), ...RUN_AT);
    await person.waitUntilVisible(person.page.getByTestId('gpumon-resume').first());
  },
  'why is GPU 5 slow': async (person) => {
    await person.click(panelTab(person.page));
    const slow = person.page.locator('[data-gpu-index="5"]');
    await person.click(slow);
    await person.waitUntilVisible(slow.getByText('hardware thermal slowdown (88').first());
  },
  'free the memory of GPU 2': async (person) => {
    await person.click(panelTab(person.page));
    const holder = notebookRow(person.page, 2);
    await person.click(holder.locator('.gpumon-process-menu'));
    await person.click(person.page.locator('.lm-Menu-item', { hasText: 'Shut Down Kernel' }));
    await person.click(person.page.locator('.jp-Dialog button', { hasText: 'Shut Down' }));
    await holder.waitFor({ state: 'detached' });
  },
};

/** Returns the row of the notebook that uses the largest part of a GPU's memory. */
function notebookRow(page: Page, gpu: number): Locator {
  const rows = page
    .getByTestId('gpumon-notebook-table')
    .locator(`[data-process-gpu="${String(gpu)}"]`);
  return rows.filter({ hasText: HOLDER });
}

export async function measureTasks({ browser, peer }: Bench): Promise<void> {
  const worker = new Worker();
  const scenario = newScenario('gpus = 8\n');
  const jupyter = await JupyterServer.start({
    ...makeFakeEnvironment(scenario),
    ...worker.environment,
  });
  try {
    jupyter.write(HOLDER, notebookOf([]));
    jupyter.write('eval.ipynb', notebookOf([]));
    const holder = await jupyter.startKernel(HOLDER);
    const other = await jupyter.startKernel('eval.ipynb');
    writeFileSync(scenario, makeBusyScenario(holder.pid, other.pid));
    // The first request starts gpumon, which then records history for the measurements.
    await fetch(jupyter.pageUrl('gpumon/healthz'));
    const before = await OpenLab.open(browser, jupyter);
    await runWorkload(before, worker);
    await before.close();
    for (const [name, task] of Object.entries(TASKS)) {
      const lab = await OpenLab.open(browser, jupyter);
      const person = new Person(lab.page);
      await task(person);
      printRow(name, '', person.summary());
      await lab.close();
    }
  } finally {
    await jupyter.stop();
  }
  const lab = await OpenLab.open(browser, peer);
  const person = new Person(lab.page);
  await person.click(lab.page.locator('[data-id="gpu-dashboard"]'));
  const buttons = lab.page.locator('.gpu-dashboard-button:not(.gpu-dashboard-toolbar-button)');
  await buttons.first().waitFor();
  await person.click(buttons.filter({ hasText: 'GPU Memory' }));
  await person.waitUntilVisible(lab.page.locator('.recharts-wrapper').first());
  printRow(`${PEER}: memory of each GPU, of whoever`, '', person.summary());
  printNote(`it has: ${(await buttons.allInnerTexts()).map((text) => text.trim()).join(', ')}`);
  await lab.close();
  printNote(
    'the machine: to what answers the question; a person: 1.35 s of thought and 1.1 s of pointing more per click',
  );
}

/**
 * Returns a scenario with eight busy GPUs. A notebook uses memory of the third GPU, and the sixth
 * GPU is throttled because it is too hot.
 */
function makeBusyScenario(holder: number, other: number): string {
  const gpus = Array.from({ length: 8 }, (_, index) => {
    const slow =
      'temperature_celsius = 88\nthrottle_reasons = ["hw_slowdown", "hw_thermal_slowdown"]\n';
    const work = `utilization_percent = 97\npower_watts = ${String(index === 5 ? 310 : 560 + 15 * index)}\n`;
    return `[[gpu]]\nindex = ${String(index)}\n${work}${index === 5 ? slow : ''}`;
  });
  const holds = (pid: number, gib: number): string =>
    `[[process]]\ngpu = 2\npid = ${String(pid)}\nmemory = "${String(gib)} GiB"\nsm_percent = ${String(gib)}\n`;
  return [...gpus, holds(holder, 60), holds(other, 5)].join('\n');
}

/**
 * Starts a run on the server and ends it. The function waits for some time before the run and after
 * it.
 */
async function runWorkload({ page }: OpenLab, worker: Worker): Promise<void> {
  await sleep(RUN_S);
  const status = await page.evaluate(async () => {
    const api = new URL('gpumon/api/v1/', location.href.replace(/lab.*/, '')).href;
    const snapshot = await fetch(`${api}snapshot`);
    const { inventory } = (await snapshot.json()) as { inventory: { gpus: { uuid: string }[] } };
    const where = { backend: 'cuda', device: inventory.gpus[0]?.uuid };
    const body = JSON.stringify({ kind: 'bench', ids: ['triad'], where });
    return (await fetch(`${api}runs`, { method: 'POST', body, headers: { 'X-Gpumon': 'run' } }))
      .status;
  });
  if (status >= 300) {
    throw new Error(`the run does not start: HTTP ${String(status)}`);
  }
  await sleep(RUN_S);
  worker.finishRuns();
  await sleep(RUN_S);
}
