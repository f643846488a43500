// C = A * B on any GPU that there is a driver for, a block of 16 x 16 threads for each 64 x 64 elements; and many small
// products at once, a block for each or for each 64 x 64 of its elements.

typedef unsigned long long u64;
typedef unsigned u32;

constexpr int EDGE = 16;

/// The sums of a thread: of every 16th row from its own, and every 16th column. Of a side whose elements of k lie side by
/// side, `AT_ONCE` says so: threads that follow each other read what follows each other.
template <typename T, int EACH> struct Part {
    static constexpr int SIDE = EDGE * EACH;
    T sum[EACH][EACH] = {};

    /// Brings 16 elements of each row, or column, to shared memory: rows are `row` apart, and elements `step`.
    template <bool AT_ONCE>
    __device__ static void bring(T (&to)[EDGE][SIDE + 1], const T *from, u64 rows, u64 left, u64 row, u64 step) {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            u32 at = threadIdx.x + i * EDGE * EDGE;
            u32 k = AT_ONCE ? at % EDGE : at / SIDE, line = AT_ONCE ? at / EDGE : at % SIDE;
            to[k][line] = line < rows && k < left ? from[line * row + k * step] : T(0);
        }
    }
    template <bool B_AT_ONCE>
    __device__ void compute(const T *a, const T *b, u64 rows, u64 columns, u64 n, u64 row, u64 column, u64 step_b) {
        __shared__ T left[EDGE][SIDE + 1], right[EDGE][SIDE + 1];
        u32 down = threadIdx.x / EDGE, across = threadIdx.x % EDGE;
        for (u64 k = 0; k < n; k += EDGE) {
            bring<true>(left, a + k, rows, n - k, row, 1);
            bring<B_AT_ONCE>(right, b + k * step_b, columns, n - k, column, step_b);
            __syncthreads();
#pragma unroll
            for (int step = 0; step < EDGE; step++) {
                T from_left[EACH], from_right[EACH];
#pragma unroll
                for (int i = 0; i < EACH; i++) from_left[i] = left[step][down + EDGE * i];
#pragma unroll
                for (int j = 0; j < EACH; j++) from_right[j] = right[step][across + EDGE * j];
#pragma unroll
                for (int i = 0; i < EACH; i++)
#pragma unroll
                    for (int j = 0; j < EACH; j++) sum[i][j] += from_left[i] * from_right[j];
            }
            __syncthreads();
        }
    }
    __device__ void store(T *out, u64 rows, u64 columns, u64 pitch) const {
        u32 down = threadIdx.x / EDGE, across = threadIdx.x % EDGE;
#pragma unroll
        for (int i = 0; i < EACH; i++)
#pragma unroll
            for (int j = 0; j < EACH; j++)
                if (down + EDGE * i < rows && across + EDGE * j < columns)
                    out[(down + EDGE * i) * pitch + across + EDGE * j] = sum[i][j];
    }
};

/// Both inputs lie row by row, B with its columns for rows.
template <typename T>
__device__ void product(T *out, const T *a, const T *b, u64 rows, u64 columns, u64 depth, u64 pitch, u64 input_pitch) {
    Part<T, 4> part;
    u64 tiles = (columns + part.SIDE - 1) / part.SIDE;
    u64 y = blockIdx.x / tiles * part.SIDE, x = blockIdx.x % tiles * part.SIDE;
    part.template compute<true>(a + y * input_pitch, b + x * input_pitch, rows - y, columns - x, depth, input_pitch,
                                input_pitch, 1);
    part.store(out + y * pitch + x, rows - y, columns - x, pitch);
}

/// Product after product, each n x n and row by row, without anything between them.
template <typename T, int EACH> __device__ void batched(T *out, const T *a, const T *b, u64 n) {
    Part<T, EACH> part;
    u64 tiles = (n + part.SIDE - 1) / part.SIDE;
    u64 which = blockIdx.x / (tiles * tiles), tile = blockIdx.x % (tiles * tiles);
    u64 y = tile / tiles * part.SIDE, x = tile % tiles * part.SIDE;
    a += which * n * n;
    b += which * n * n;
    part.template compute<false>(a + y * n, b + x, n - y, n - x, n, n, 1, n);
    part.store(out + which * n * n + y * n + x, n - y, n - x, n);
}

#define BATCHED(T, name)                                                                                              \
    __global__ void __launch_bounds__(256) name##_32(T *out, const T *a, const T *b, u64 n) {                         \
        batched<T, 2>(out, a, b, n);                                                                                  \
    }                                                                                                                 \
    __global__ void __launch_bounds__(256) name##_64(T *out, const T *a, const T *b, u64 n) {                         \
        batched<T, 4>(out, a, b, n);                                                                                  \
    }

extern "C" {
__global__ void __launch_bounds__(256)
    matmul_fp32_any(float *out, const float *a, const float *b, u64 rows, u64 columns, u64 depth, u64 pitch,
                    u64 input_pitch) {
    product(out, a, b, rows, columns, depth, pitch, input_pitch);
}
__global__ void __launch_bounds__(256)
    matmul_fp64_any(double *out, const double *a, const double *b, u64 rows, u64 columns, u64 depth, u64 pitch,
                    u64 input_pitch) {
    product(out, a, b, rows, columns, depth, pitch, input_pitch);
}
BATCHED(float, matmul_batched_fp32)
BATCHED(double, matmul_batched_fp64)
}
