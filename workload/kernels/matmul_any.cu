// C = A * B on any GPU that there is a driver for, a block of 16 x 16 threads for each 64 x 64 elements; and many small
// products at once, a block for each.

typedef unsigned long long u64;
typedef unsigned u32;

constexpr int EDGE = 16;

/// The sums of a thread: of every 16th row from its own, and every 16th column. `step_a` and `step_b` lead from one k to
/// the next, `row` and `column` to the next row of A and column of B.
template <typename T, int EACH> struct Part {
    static constexpr int SIDE = EDGE * EACH;
    T sum[EACH][EACH];

    __device__ void compute(const T *a, const T *b, u64 rows, u64 columns, u64 n, u64 row, u64 step_a, u64 column,
                            u64 step_b) {
        __shared__ T left[EDGE][SIDE + 1], right[EDGE][SIDE + 1];
        u32 down = threadIdx.x / EDGE, across = threadIdx.x % EDGE;
        for (int i = 0; i < EACH * EACH; i++) sum[i / EACH][i % EACH] = 0;
        for (u64 k = 0; k < n; k += EDGE) {
            for (u32 at = threadIdx.x; at < EDGE * SIDE; at += EDGE * EDGE) {
                // Threads that follow each other read what lies side by side.
                u32 left_k = step_a == 1 ? at % EDGE : at / SIDE, left_row = step_a == 1 ? at / EDGE : at % SIDE;
                u32 right_k = step_b == 1 ? at % EDGE : at / SIDE, right_row = step_b == 1 ? at / EDGE : at % SIDE;
                bool is_left = left_row < rows && k + left_k < n, is_right = right_row < columns && k + right_k < n;
                left[left_k][left_row] = is_left ? a[left_row * row + (k + left_k) * step_a] : T(0);
                right[right_k][right_row] = is_right ? b[right_row * column + (k + right_k) * step_b] : T(0);
            }
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

/// As every other product here: `row` and `step` say how both inputs lie.
template <typename T>
__device__ void product(T *out, const T *a, const T *b, u64 n, u64 pitch, u64 row, u64 step) {
    Part<T, 4> part;
    u64 tiles = (n + part.SIDE - 1) / part.SIDE;
    u64 y = blockIdx.x / tiles * part.SIDE, x = blockIdx.x % tiles * part.SIDE;
    part.compute(a + y * row, b + x * row, n - y, n - x, n, row, step, row, step);
    part.store(out + y * pitch + x, n - y, n - x, pitch);
}

/// Product after product, each n x n and row by row, without anything between them.
template <typename T, int EACH> __device__ void batched(T *out, const T *a, const T *b, u64 n) {
    Part<T, EACH> part;
    u64 tiles = (n + part.SIDE - 1) / part.SIDE;
    u64 which = blockIdx.x / (tiles * tiles), tile = blockIdx.x % (tiles * tiles);
    u64 y = tile / tiles * part.SIDE, x = tile % tiles * part.SIDE;
    a += which * n * n;
    b += which * n * n;
    part.compute(a + y * n, b + x, n - y, n - x, n, n, 1, 1, n);
    part.store(out + which * n * n + y * n + x, n - y, n - x, n);
}

#define BATCHED(T, name)                                                                                              \
    __global__ void __launch_bounds__(256) name##_32(T *out, const T *a, const T *b, u64 n) {                         \
        batched<T, 2>(out, a, b, n);                                                                                  \
    }                                                                                                                 \
    __global__ void __launch_bounds__(256) name##_64(T *out, const T *a, const T *b, u64 n) {                         \
        batched<T, 4>(out, a, b, n);                                                                                  \
    }                                                                                                                 \
    __global__ void __launch_bounds__(256) name##_112(T *out, const T *a, const T *b, u64 n) {                        \
        batched<T, 7>(out, a, b, n);                                                                                  \
    }

extern "C" {
__global__ void __launch_bounds__(256)
    matmul_fp32_any(float *out, const float *a, const float *b, u64 n, u64 pitch, u64 row, u64 step) {
    product(out, a, b, n, pitch, row, step);
}
__global__ void __launch_bounds__(256)
    matmul_fp64_any(double *out, const double *a, const double *b, u64 n, u64 pitch, u64 row, u64 step) {
    product(out, a, b, n, pitch, row, step);
}
BATCHED(float, matmul_batched_fp32)
BATCHED(double, matmul_batched_fp64)
}
