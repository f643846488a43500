/** The out-of-memory errors of frameworks. */

/** The content of a kernel's `error` message, which may come from any program. */
export interface KernelError {
  ename?: unknown;
  evalue?: unknown;
  traceback?: unknown;
}

/** An out-of-memory error of a GPU. Values that the text does not state are `null`. */
export interface OomError {
  framework: string;
  asked_bytes: number | null;
  /** The free memory of the whole GPU. */
  free_bytes: number | null;
  total_bytes: number | null;
  /**
   * The index of the GPU among the GPUs that the kernel can see. It may differ from the GPU's index
   * on the machine.
   */
  gpu: number | null;
  /** The memory that the framework has reserved but does not use. It may be fragmented. */
  unused_bytes: number | null;
  /** The framework's own limit, if one is set. */
  limit_bytes: number | null;
  /** Whether the text explicitly refers to GPU memory rather than host memory. */
  says_gpu: boolean;
}

interface FrameworkErrors {
  framework: string;
  /** A pattern for the names of the framework's exceptions, without their modules. */
  name: RegExp;
  /** A pattern that must match the text of the error. */
  says: RegExp;
  /**
   * A pattern for texts about host memory. If the text matches it, the error is not about a GPU.
   */
  unless?: RegExp;
  /**
   * Whether errors about host memory have the same text. In this case, the text must name a GPU.
   */
  either?: boolean;
  /** A pattern for the requested memory. Group 1 is a size. */
  asked?: RegExp;
  free?: RegExp;
  /** A pattern for the memory in use. It is for messages that do not state the free memory. */
  used?: RegExp;
  total?: RegExp;
  unused?: RegExp;
  limit?: RegExp;
  /** A pattern for the GPU. Group 1 is its index. */
  gpu?: RegExp;
  /** A pattern for a tensor. Group 1 is its shape, and group 2 its type. */
  tensor?: RegExp;
}

const SIZE = String.raw`([\d.,]*\d ?(?:[KMGT]i?B?|bytes?|B)\b)`;

function sizePattern(before: string, after = ''): RegExp {
  return new RegExp(before + SIZE + after, 'i');
}

const FRAMEWORK_ERRORS: readonly FrameworkErrors[] = [
  {
    framework: 'PyTorch',
    name: /^(OutOfMemory|Runtime|Accelerator)Error$/,
    says: /(CUDA|HIP|XPU) out of memory\. Tried to allocate|^(CUDA|HIP) error: ?out of memory/m,
    asked: sizePattern('Tried to allocate '),
    free: sizePattern('(?:of which|already allocated;) ', '(?: is)? free'),
    total: sizePattern('(?:total capac\\w+ of |GPU \\d+; )'),
    unused: sizePattern('', ' is reserved by PyTorch but unallocated'),
    limit: sizePattern('', ' allowed'),
    gpu: /GPU (\d+)/,
  },
  {
    framework: 'CuPy',
    name: /^(OutOfMemory|CUDARuntime)Error$/,
    says: /^out of memory (to allocate|allocating) |cudaErrorMemoryAllocation/i,
    asked: sizePattern('(?:to allocate|allocating) '),
    limit: sizePattern('limit set to:? '),
  },
  {
    framework: 'JAX',
    either: true,
    name: /^(XlaRuntime|JaxRuntime|Runtime)Error$/,
    says: /RESOURCE[ _]EXHAUSTED: (Out of memory|Failed to allocate)/i,
    asked: sizePattern('(?:allocate|allocating) (?:request for \\S+ \\()?'),
    gpu: /device ordinal (\d+)/,
  },
  {
    framework: 'TensorFlow',
    either: true,
    name: /^ResourceExhaustedError$/,
    says: /OOM when allocating|allocate/,
    unless: /device:CPU/i,
    asked: sizePattern('to allocate '),
    tensor: /tensor (?:with|of) shape ?\[([\d,]*)\](?: and type (\w+))?/,
    gpu: /device:GPU:(\d+)/i,
  },
  {
    framework: 'Numba',
    name: /^Cuda(API|Support)Error$/,
    says: /CUDA_ERROR_OUT_OF_MEMORY/,
    unless: /cuMem(Host|AllocHost)/,
  },
  {
    framework: 'CUDA.jl',
    name: /^(OutOfGPUMemory|Cu|Load)Error$/,
    says: /Out of GPU memory|ERROR_OUT_OF_MEMORY/,
    asked: sizePattern('trying to allocate '),
    used: sizePattern('GPU memory usage: [^(]*\\(', '/'),
    total: sizePattern('GPU memory usage: [^/]*/'),
  },
  {
    framework: 'AMDGPU.jl',
    either: true,
    name: /^(HIP|Load)Error$/,
    says: /hipErrorOutOfMemory/,
  },
  {
    framework: 'RAPIDS',
    name: /^MemoryError$/,
    says: /^std::bad_alloc: .*(CUDA|RMM)/,
    asked: sizePattern('to allocate '),
  },
];

/** Parses an out-of-memory error. Returns `null` for any other error. */
export function parseOomError(error: KernelError): OomError | null {
  const name = removeColorCodes(error.ename).replace(/^.*\./, '');
  const value = removeColorCodes(error.evalue);
  const dialect = FRAMEWORK_ERRORS.find((one) => one.name.test(name) && one.says.test(value));
  if (dialect === undefined || dialect.unless?.test(value) === true) {
    return null;
  }
  // Values that the message lacks may be in the traceback, which includes the original error.
  const text = [
    value,
    ...(Array.isArray(error.traceback) ? error.traceback.map(removeColorCodes) : []),
  ].join('\n');
  const size = (pattern: RegExp | undefined): number | null => parseBytes(pattern?.exec(text)?.[1]);
  const total_bytes = size(dialect.total);
  const used_bytes = size(dialect.used);
  const gpu = dialect.gpu?.exec(text)?.[1];
  return {
    framework: dialect.framework,
    asked_bytes: size(dialect.asked) ?? tensorBytes(dialect.tensor?.exec(text)),
    free_bytes:
      used_bytes === null || total_bytes === null ? size(dialect.free) : total_bytes - used_bytes,
    total_bytes,
    gpu: gpu === undefined ? null : Number(gpu),
    unused_bytes: size(dialect.unused),
    limit_bytes: size(dialect.limit),
    says_gpu: dialect.either !== true || /cuda|gpu/i.test(value),
  };
}

/** Removes the colors of a terminal. */
function removeColorCodes(text: unknown): string {
  // oxlint-disable-next-line no-control-regex
  return typeof text === 'string' ? text.replace(/\u001b\[[\d;]*m/g, '') : '';
}

/** Parses a size such as `1.70 GiB`, `25,600,000 bytes` or `3206250496B`. */
function parseBytes(size: string | undefined): number | null {
  const [, digits = '', unit = ''] = /^([\d.,]+) ?(\w)/.exec(size ?? '') ?? [];
  const number = parseFloat(digits.replaceAll(',', ''));
  return Number.isNaN(number)
    ? null
    : number * 1024 ** Math.max(0, ' KMGT'.indexOf(unit.toUpperCase()));
}

const WIDTHS: Readonly<Record<string, number>> = { float: 4, double: 8, half: 2, bool: 1 };

/** Returns the size of a tensor in bytes from its shape and the name of its type. */
function tensorBytes(tensor: RegExpExecArray | null | undefined): number | null {
  const type = tensor?.[2] ?? '';
  const width = WIDTHS[type] ?? Number(/\d+/.exec(type)?.[0] ?? NaN) / 8;
  const shape = tensor?.[1] ?? '';
  const count =
    shape === '' ? 1 : shape.split(',').reduce((product, side) => product * Number(side), 1);
  return Number.isNaN(width) ? null : Math.round(count * width);
}
