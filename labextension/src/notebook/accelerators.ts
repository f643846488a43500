/** cudf.pandas and cuml.accel in a kernel: which it has, which are on, and how they are loaded. */

import type { Kernel } from '@jupyterlab/services';

/** Extensions of IPython that run a library on the GPU, and that have to be loaded before it; in the order of loading. */
const ACCELERATORS = [
  { name: 'cudf.pandas', module: 'pandas', library: 'pandas' },
  { name: 'cuml.accel', module: 'sklearn', library: 'scikit-learn' },
] as const;

export interface Accelerator {
  name: string;
  library: string;
  isOn: boolean;
  /** The library is there already, so that it is too late before the next start of the kernel. */
  isLate: boolean;
}

export interface Loaded {
  accelerators: Accelerator[];
  /** What did not work, in the kernel's words. */
  failures: string[];
}

/** Python that finds the modules without importing them, since their import alone takes seconds and GPU memory. */
const QUERY = `
import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec
from IPython import get_ipython
loaded = get_ipython().extension_manager.loaded
def has(name):
    package = name in sys.modules or find_spec(name.partition('.')[0])
    return package is True or bool(package and PathFinder.find_spec(name, package.submodule_search_locations or []))
def on(name):
    module = sys.modules.get(name)
    return name in loaded or getattr(module, 'LOADED', False) or getattr(module, 'enabled', bool)()
answer = [[int(has(name)), int(on(name)), int(late in sys.modules)] for name, late in ${pythonText(
  ACCELERATORS.map(({ name, module }) => [name, module]),
)}]
`;

/** An expression leaves no name behind in the notebook; what it needs has a namespace of its own. */
const EXPRESSION = `(lambda own: exec(${pythonText(QUERY)}, own) or own['answer'])({})`;

/** The accelerators that a kernel has; none where it cannot tell. */
export async function findAccelerators(kernel: Kernel.IKernelConnection): Promise<Accelerator[]> {
  const { language_info } = await kernel.info;
  return language_info.name === 'python'
    ? read((await evaluate(kernel, { state: EXPRESSION })).state)
    : [];
}

/** Loads those that are not on, as `%load_ext` does. */
export async function loadAccelerators(
  kernel: Kernel.IKernelConnection,
  accelerators: readonly Accelerator[],
): Promise<Loaded> {
  const names = accelerators.filter(({ isOn }) => !isOn).map(({ name }) => name);
  const load = (name: string): string =>
    `__import__('IPython').get_ipython().extension_manager.load_extension(${pythonText(name)})`;
  const answers = await evaluate(kernel, {
    ...Object.fromEntries(names.map((name) => [name, load(name)])),
    // The last to be evaluated, so it tells what has come of the others.
    state: EXPRESSION,
  });
  const after = read(answers.state);
  const failures = names
    .filter((name) => after.find((one) => one.name === name)?.isOn !== true)
    .map((name) => `${name}: ${failureOf(answers[name])}`);
  return { accelerators: after, failures };
}

interface ExpressionResult {
  status?: string;
  data?: { 'text/plain'?: string };
  ename?: string;
  evalue?: string;
}

/** Has a kernel evaluate expressions, without a trace in its counter, its history and its names. */
async function evaluate(
  kernel: Kernel.IKernelConnection,
  user_expressions: Record<string, string>,
): Promise<Record<string, ExpressionResult>> {
  const { content } = await kernel.requestExecute({
    code: '',
    silent: true,
    store_history: false,
    allow_stdin: false,
    // Cells that wait behind it are none of its business.
    stop_on_error: false,
    user_expressions,
  }).done;
  return content.status === 'ok'
    ? (content.user_expressions as Record<string, ExpressionResult>)
    : {};
}

function read(answer: ExpressionResult | undefined): Accelerator[] {
  const text = answer?.status === 'ok' ? answer.data?.['text/plain'] : undefined;
  const rows = JSON.parse(text ?? '[]') as [number, number, number][];
  return ACCELERATORS.flatMap(({ name, library }, i) => {
    const [has, on, late] = rows[i] ?? [0, 0, 0];
    return has === 0 ? [] : [{ name, library, isOn: on === 1, isLate: on === 0 && late === 1 }];
  });
}

function failureOf(answer: ExpressionResult | undefined): string {
  return answer?.status === 'error'
    ? `${answer.ename ?? ''}: ${answer.evalue ?? ''}`
    : (answer?.data?.['text/plain'] ?? '–');
}

/** JSON of plain text and lists is Python, too. */
function pythonText(value: unknown): string {
  return JSON.stringify(value);
}
