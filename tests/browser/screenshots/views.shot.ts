/** Screenshots of the panel in JupyterLab and of the page, in light and dark. */

import { it, onTestFinished } from 'vitest';

import { launchBrowser, newPage } from '../src/browser';
import { JupyterServer } from '../src/jupyter';
import { Lab } from '../src/lab';
import { notebookOf } from '../src/notebook-file';
import { View } from '../src/view';
import { SOURCE, saveImage } from './images';

/** The time, in seconds, to record before the screenshot, because the charts show two minutes. */
const HISTORY_S = 122;
const CODE = [
  'from datasets import load_dataset\nfrom transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments',
  'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen3-8B", dtype="bfloat16", device_map="cuda:0")\ntokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen3-8B")',
  'trainer = Trainer(\n    model=model,\n    args=TrainingArguments("out", per_device_train_batch_size=8, bf16=True, max_steps=20_000),\n    train_dataset=load_dataset("text", data_files="corpus/*.txt")["train"],\n)\ntrainer.train()',
];
it('images of panel and page', async () => {
  const browser = await launchBrowser();
  onTestFinished(() => browser.close());
  const jupyter = await JupyterServer.start({ GPUMON_SOURCE: SOURCE });
  onTestFinished(() => jupyter.stop());
  jupyter.write('train.ipynb', notebookOf(CODE));
  const { page } = await newPage(browser, {
    viewport: { width: 1360, height: 930 },
    deviceScaleFactor: 1.5,
  });
  const lab = new Lab(page);
  const view = new View(page);
  await lab.open(jupyter.pageUrl('lab/tree/train.ipynb'));
  await page.locator('.jp-Notebook .cm-content').first().waitFor();
  await lab.showPanel();
  await lab.widenPanel(400);
  await view.waitUntilLive();
  await view.waitForHistory(HISTORY_S);
  await saveImage(page, 'panel-light.png');
  await lab.selectTheme('JupyterLab Dark');
  await page.locator('[data-gpumon-scheme=dark]').waitFor();
  await view.waitForChange(0, 'power.draw_watts');
  await saveImage(page, 'panel-dark.png');

  await page.goto(jupyter.pageUrl('gpumon/'));
  for (const scheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await view.waitUntilLive();
    await page.locator(`[data-gpumon-scheme=${scheme}]`).waitFor();
    await view.waitForChange(0, 'power.draw_watts');
    await saveImage(page, `page-${scheme}.png`, true);
  }
});
