import type { Kernel } from '@jupyterlab/services';

/** IPython extensions that run a library on the GPU, in loading order. */
const ACCELERATORS = [
  { name: 'cudf.pandas', module: 'pandas', library: 'pandas' },
  { name: 'cuml.accel', module: 'sklearn', library: 'scikit-learn' },
] as const;

/** An accelerator that is available in a kernel. */
export interface Accelerator {
  name: string;
  library: string;
  isOn: boolean;
  /**
   * Whether the library is already imported. In this case the kernel must be restarted before the
   * accelerator can be loaded.
   */
  isLate: boolean;
}

/**
 * Python code that finds the modules of accelerators and libraries without importing them, because
 * an import takes seconds and GPU memory. The names are inserted as JSON, because JSON strings and
 * lists are also valid Python.
 */
const QUERY = `
import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec
from IPython import get_ipython
loaded = get_ipython().extension_manager.loaded
def has(name):
    if name in sys.modules:
        return True
    package = find_spec(name.partition('.')[0])
    folders = package and package.submodule_search_locations or []
    return bool(PathFinder.find_spec(name, folders))
def on(name):
    module = sys.modules.get(name)
    enabled = getattr(module, 'enabled', bool)()
    return name in loaded or getattr(module, 'LOADED', False) or enabled
names = ${JSON.stringify(ACCELERATORS.map(({ name, module }) => [name, module]))}
answer = [[int(has(name)), int(on(name)), int(late in sys.modules)] for name, late in names]
`;

/**
 * A Python expression that runs `QUERY` in its own namespace, so that no names remain in the
 * notebook.
 */
const EXPRESSION = `(lambda own: exec(${JSON.stringify(QUERY)}, own) or own['answer'])({})`;

/** Returns the accelerators of a kernel, or an empty list if the kernel runs another language. */
export async function findAccelerators(kernel: Kernel.IKernelConnection): Promise<Accelerator[]> {
  const { language_info } = await kernel.info;
  return language_info.name === 'python'
    ? parseAccelerators((await evaluate(kernel, { state: EXPRESSION })).state)
    : [];
}

/**
 * Loads the accelerators that are not loaded yet, as `%load_ext` does. The returned `failures` are
 * the kernel's error messages.
 */
export async function loadAccelerators(
  kernel: Kernel.IKernelConnection,
  accelerators: readonly Accelerator[],
): Promise<{ accelerators: Accelerator[]; failures: string[] }> {
  const names = accelerators.filter(({ isOn }) => !isOn).map(({ name }) => name);
  const load = (name: string): string =>
    `__import__('IPython').get_ipython().extension_manager.load_extension(${JSON.stringify(name)})`;
  const loading = Object.fromEntries(names.map((name) => [name, load(name)]));
  // The state of the accelerators is evaluated last, so that it shows what the loading has changed.
  const answers = await evaluate(kernel, { ...loading, state: EXPRESSION });
  const after = parseAccelerators(answers.state);
  const failures = names
    .filter((name) => after.find((one) => one.name === name)?.isOn !== true)
    .map((name) => {
      const { status, ename = '', evalue = '', data } = answers[name] ?? {};
      const why = status === 'error' ? `${ename}: ${evalue}` : data?.['text/plain'];
      return `${name}: ${why ?? '–'}`;
    });
  return { accelerators: after, failures };
}

interface ExpressionResult {
  status?: string;
  data?: { 'text/plain'?: string };
  ename?: string;
  evalue?: string;
}

/** Evaluates expressions without changing the kernel's execution count, history or variables. */
async function evaluate(
  kernel: Kernel.IKernelConnection,
  user_expressions: Record<string, string>,
): Promise<Record<string, ExpressionResult>> {
  const { content } = await kernel.requestExecute({
    code: '',
    silent: true,
    store_history: false,
    allow_stdin: false,
    // If an expression fails, cells that are queued in the kernel must still run.
    stop_on_error: false,
    user_expressions,
  }).done;
  return content.status === 'ok'
    ? (content.user_expressions as Record<string, ExpressionResult>)
    : {};
}

function parseAccelerators(answer: ExpressionResult | undefined): Accelerator[] {
  const text = answer?.status === 'ok' ? answer.data?.['text/plain'] : undefined;
  const rows = JSON.parse(text ?? '[]') as [number, number, number][];
  return ACCELERATORS.flatMap(({ name, library }, i) => {
    const [has, on, late] = rows[i] ?? [0, 0, 0];
    return has === 0 ? [] : [{ name, library, isOn: on === 1, isLate: on === 0 && late === 1 }];
  });
}
