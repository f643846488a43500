import { describe, expect, it } from 'vitest';

import { parseOomError, type OomError } from './oom-error';

const GIB = 1024 ** 3;
const MIB = 1024 ** 2;

function parseError(
  ename: string,
  evalue: string,
  traceback: string[] = [],
): Partial<OomError> | null {
  const error = parseOomError({ ename, evalue, traceback });
  return error === null
    ? null
    : Object.fromEntries(Object.entries(error).filter(([, value]) => value !== null));
}

describe('out-of-memory errors', () => {
  it('current PyTorch error is parsed', () => {
    const text =
      'CUDA out of memory. Tried to allocate 22.78 GiB. GPU 1 has a total capacity of 31.47 GiB of which 12.73 GiB is ' +
      'free. Including non-PyTorch memory, this process has 18.73 GiB memory in use. Of the allocated memory 9.08 GiB ' +
      'is allocated by PyTorch, and 9.35 GiB is reserved by PyTorch but unallocated. If reserved but unallocated ' +
      'memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.';
    const wanted = {
      framework: 'PyTorch',
      asked_bytes: 22.78 * GIB,
      free_bytes: 12.73 * GIB,
      total_bytes: 31.47 * GIB,
      unused_bytes: 9.35 * GIB,
      gpu: 1,
      says_gpu: true,
    };
    expect(parseError('OutOfMemoryError', text)).toEqual(wanted);
    expect(parseError('torch.cuda.OutOfMemoryError', text.replace('capacity', 'capacty'))).toEqual(
      wanted,
    );
    const inWorker = `Caught OutOfMemoryError in replica 0 on device 0.\nOriginal Traceback:\n  ...\n${text}`;
    expect(parseError('OutOfMemoryError', inWorker)).toEqual(wanted);
    const limited = text.replace('Of the allocated', '4.00 GiB allowed; Of the allocated');
    expect(parseError('OutOfMemoryError', limited)?.limit_bytes).toBe(4 * GIB);
  });

  it('older PyTorch error is parsed', () => {
    const text =
      'CUDA out of memory. Tried to allocate 236.00 MiB (GPU 0; 15.78 GiB total capacity; 14.25 GiB already allocated; ' +
      '183.50 MiB free; 14.34 GiB reserved in total by PyTorch)';
    const sizes = {
      asked_bytes: 236 * MIB,
      free_bytes: 183.5 * MIB,
      total_bytes: 15.78 * GIB,
      gpu: 0,
    };
    expect(parseError('RuntimeError', text)).toEqual({
      framework: 'PyTorch',
      says_gpu: true,
      ...sizes,
    });
    const nothingFree = text.replace('183.50 MiB free', '0 bytes free');
    expect(parseError('OutOfMemoryError', nothingFree)).toMatchObject({ free_bytes: 0 });
    const cached =
      'CUDA out of memory. Tried to allocate 1024.00 KiB (GPU 0; 11.17 GiB total capacity; 10.90 GiB already ' +
      'allocated; 576.00 KiB free; 30.96 MiB cached)';
    expect(parseError('RuntimeError', cached)).toMatchObject({
      asked_bytes: MIB,
      free_bytes: 576 * 1024,
    });
    const driver =
      'CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some other API call';
    expect(parseError('AcceleratorError', driver)).toEqual({
      framework: 'PyTorch',
      says_gpu: true,
    });
  });

  it('PyTorch error for AMD and Intel is parsed', () => {
    const hip =
      'HIP out of memory. Tried to allocate 3.31 GiB. GPU 0 has a total capacity of 128.00 GiB ' +
      'of which 780.24 MiB is free. Of the allocated memory 57.70 GiB is allocated by PyTorch, ' +
      'and 75.82 MiB is reserved by PyTorch but unallocated.';
    expect(parseError('OutOfMemoryError', hip)).toEqual({
      framework: 'PyTorch',
      asked_bytes: 3.31 * GIB,
      free_bytes: 780.24 * MIB,
      total_bytes: 128 * GIB,
      unused_bytes: 75.82 * MIB,
      gpu: 0,
      says_gpu: true,
    });
    const xpu =
      'XPU out of memory. Tried to allocate 8.11 GiB. GPU 0 has a total capacity of 16.54 GiB ' +
      'of which 16.54 GiB is free. 8.27 GiB allowed; Of the allocated memory 0 bytes is ' +
      'allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated.';
    expect(parseError('OutOfMemoryError', xpu)).toMatchObject({
      free_bytes: 16.54 * GIB,
      limit_bytes: 8.27 * GIB,
    });
    expect(parseError('RuntimeError', 'HIP error: out of memory')).toMatchObject({
      framework: 'PyTorch',
    });
  });

  it('AMDGPU.jl error does not prove GPU exhaustion', () =>
    expect(parseError('HIPError', 'HIPError(code hipErrorOutOfMemory, out of memory)')).toEqual({
      framework: 'AMDGPU.jl',
      says_gpu: false,
    }));

  it('CuPy error is parsed', () => {
    const now =
      'Out of memory allocating 25,600,000 bytes (allocated so far: 3,635,267,072 bytes).';
    const cupy = { framework: 'CuPy', says_gpu: true };
    expect(parseError('OutOfMemoryError', now)).toEqual({ ...cupy, asked_bytes: 25_600_000 });
    const limited = now.replace(').', ', limit set to: 8,589,934,592 bytes).');
    expect(parseError('OutOfMemoryError', limited)).toMatchObject({
      asked_bytes: 25_600_000,
      limit_bytes: 8 * GIB,
    });
    const before = 'out of memory to allocate 1073741824 bytes (total 12373894656 bytes)';
    expect(parseError('OutOfMemoryError', before)).toEqual({ ...cupy, asked_bytes: GIB });
    const runtime = 'cudaErrorMemoryAllocation: out of memory';
    expect(parseError('CUDARuntimeError', runtime)).toEqual({ framework: 'CuPy', says_gpu: true });
  });

  it('JAX error does not name its device', () => {
    const jax = { framework: 'JAX', says_gpu: false };
    const execute =
      'RESOURCE_EXHAUSTED: Out of memory while trying to allocate 7406166528 bytes.\nBufferAssignment OOM';
    expect(parseError('XlaRuntimeError', execute)).toEqual({ ...jax, asked_bytes: 7_406_166_528 });
    const put = 'RESOURCE_EXHAUSTED: Out of memory allocating 20029400304 bytes.';
    expect(parseError('JaxRuntimeError', put)).toEqual({ ...jax, asked_bytes: 20_029_400_304 });
    const request =
      'RESOURCE_EXHAUSTED: Failed to allocate request for 2.99GiB (3206250496B) on device ordinal 0';
    expect(parseError('XlaRuntimeError', request)).toEqual({
      ...jax,
      asked_bytes: 3_206_250_496,
      gpu: 0,
    });
    const old = 'Resource exhausted: Out of memory while trying to allocate 5520758552 bytes.';
    expect(parseError('RuntimeError', old)).toEqual({ ...jax, asked_bytes: 5_520_758_552 });
  });

  it('TensorFlow error has shape and type of tensor', () => {
    const where = 'on /job:localhost/replica:0/task:0/device:GPU:1 by allocator GPU_1_bfc';
    const text = (shape: string, type: string): string =>
      `Graph execution error:\n\nOOM when allocating tensor with shape[${shape}] and type ${type} ${where}\n\t [[Node: a]]`;
    const asked = (shape: string, type: string): number | undefined =>
      parseError('ResourceExhaustedError', text(shape, type))?.asked_bytes ?? undefined;
    expect(parseError('ResourceExhaustedError', text('128,128,109,109', 'float'))).toEqual({
      framework: 'TensorFlow',
      asked_bytes: 128 * 128 * 109 * 109 * 4,
      gpu: 1,
      says_gpu: true,
    });
    const types = ['half', 'bfloat16', 'double', 'int8', 'int64', 'complex128', 'bool'];
    expect(types.map((type) => asked('10,10', type))).toEqual([200, 200, 800, 100, 800, 1600, 100]);
    expect([asked('', 'float'), asked('10', 'variant')]).toEqual([4, undefined]);
    const brief =
      '{{function_node __wrapped__Mul_device_/job:localhost/device:GPU:0}} failed to allocate memory [Op:Mul]';
    expect(parseError('ResourceExhaustedError', brief)).toEqual({
      framework: 'TensorFlow',
      gpu: 0,
      says_gpu: true,
    });
    expect(
      parseError('ResourceExhaustedError', text('10', 'float').replaceAll('GPU', 'CPU')),
    ).toBeNull();
  });

  it('Numba error has no values', () => {
    const text = '[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY';
    expect(parseError('CudaAPIError', text)).toEqual({ framework: 'Numba', says_gpu: true });
    expect(parseError('CudaAPIError', text.replace('cuMemAlloc', 'cuMemHostAlloc'))).toBeNull();
    expect(
      parseError('CudaAPIError', '[719] Call to cuMemAlloc results in CUDA_ERROR_LAUNCH_FAILED'),
    ).toBeNull();
  });

  it('CUDA.jl error may be only in traceback', () => {
    const text =
      'Out of GPU memory trying to allocate 11.921 GiB\nEffective GPU memory usage: 99.85% (15.758 GiB/15.782 GiB)\n' +
      'Memory pool usage: 13.411 GiB (15.281 GiB reserved)\n';
    const error = parseError('OutOfGPUMemoryError', text);
    expect(error).toMatchObject({
      framework: 'CUDA.jl',
      asked_bytes: 11.921 * GIB,
      total_bytes: 15.782 * GIB,
    });
    expect(error?.free_bytes).toBeCloseTo(0.024 * GIB, -3);
    expect(parseError('LoadError', `LoadError: ${text}`)).toEqual(error);
    expect(parseError('CUDA.OutOfGPUMemoryError', 'Out of GPU memory', [text])).toEqual(error);
    const cu = parseError('CuError', 'CUDA error: out of memory (code #2, ERROR_OUT_OF_MEMORY)');
    expect(cu).toEqual({ framework: 'CUDA.jl', says_gpu: true });
  });

  it('RAPIDS error is parsed', () => {
    const text =
      'std::bad_alloc: out_of_memory: CUDA error at: /opt/include/rmm/mr/device/cuda_memory_resource.hpp:68: ' +
      'cudaErrorMemoryAllocation out of memory';
    expect(parseError('MemoryError', text)).toEqual({ framework: 'RAPIDS', says_gpu: true });
  });

  it('terminal colors are ignored', () => {
    const text = '\u001b[31mCUDA out of memory. Tried to allocate \u001b[1m2.00 GiB\u001b[0m.';
    expect(parseError('\u001b[91mOutOfMemoryError\u001b[0m', text)).toMatchObject({
      asked_bytes: 2 * GIB,
    });
  });
});

it('other errors are not parsed', () => {
  const others: [string, string, string[]?][] = [
    [
      'MemoryError',
      'Unable to allocate 74.5 GiB for an array with shape (100000, 100000) and data type float64',
    ],
    ['MemoryError', ''],
    ['ValueError', 'the log says: CUDA out of memory. Tried to allocate 2.00 GiB.'],
    ['RuntimeError', 'CUDA error: an illegal memory access was encountered'],
    [
      'RuntimeError',
      '[enforce fail at alloc_cpu.cpp:75] DefaultCPUAllocator: can not allocate memory',
    ],
    ['KeyError', "'a'", ['print("CUDA out of memory. Tried to allocate 2.00 GiB")']],
    ['XlaRuntimeError', 'INTERNAL: ptxas exited with non-zero error code 65280'],
    ['OutOfMemoryError', 'Java heap space'],
    ['OutOfMemoryError', ''],
  ];
  for (const [ename, evalue, traceback] of others) {
    expect(parseError(ename, evalue, traceback), `${ename}: ${evalue}`).toBeNull();
  }
  expect(parseOomError({ ename: 7, traceback: 'no list' })).toBeNull();
});
