// Compiled for: compute_80, compute_90.
// A batch of products of n x n matrices, row-major and contiguous, with n <= 104: a block for each product. A multiprocessor
// of an H100 holds two blocks, of which one loads while the other multiplies.

typedef unsigned long long u64;
typedef unsigned u32;

constexpr int SIDE = 104;

__device__ u32 shared_address(const void *place) { return (u32)__cvta_generic_to_shared(place); }

/// Starts an asynchronous copy to shared memory, of zeros where the source is not there.
template <int BYTES> __device__ void begin_copy(void *to, const void *from, bool is_there = true) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)), "l"(from), "n"(BYTES),
                 "r"(is_there ? BYTES : 0) : "memory");
}
__device__ void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most `MOST` groups are pending.
template <int MOST> __device__ void wait_for_groups() { asm volatile("cp.async.wait_group %0;" ::"n"(MOST) : "memory"); }

// fp32: both matrices are in shared memory, A transposed. A thread computes 8 x 8 results, as 2 x 2 squares of four rows and
// columns, so that a warp reads consecutive packs.

/// 13 x 13 threads, in whole warps.
constexpr int THREADS_32 = 192, EDGE = 13, HALF = SIDE / 2;
/// Padded, so that the transposing writes of A have 4-way bank conflicts instead of 8-way.
constexpr int PITCH_32 = SIDE + 4;

struct alignas(16) Four { float lane[4]; };

__device__ void multiply_32(float *out, const float *a, const float *b, u32 n) {
    extern __shared__ __align__(16) float shared_32[];
    float *left = shared_32, *right = shared_32 + SIDE * PITCH_32;
    constexpr u32 GROUPS = 4, WARPS = THREADS_32 / 32;
    u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 steps = (n + GROUPS - 1) / GROUPS;
    for (u32 group = 0; group < GROUPS; group++) {
        u32 first = group * steps, width = first < n ? min(steps, n - first) : 0;
        // `width` is at most 26: a lane for each step.
        for (u32 line = warp; line < n && lane < width; line += WARPS)
            begin_copy<4>(left + (first + lane) * PITCH_32 + line, a + line * n + first + lane);
        for (u32 step = first + warp; step < first + width; step += WARPS)
            if (n % 4 == 0) {
                if (lane < n / 4) begin_copy<16>(right + step * PITCH_32 + lane * 4, b + step * n + lane * 4);
            } else {
                for (u32 column = lane; column < n; column += 32)
                    begin_copy<4>(right + step * PITCH_32 + column, b + step * n + column);
            }
        end_group();
    }
    float sum[8][8] = {};
    u32 down = min(threadIdx.x / EDGE, EDGE - 1) * 4, across = threadIdx.x % EDGE * 4;
    auto multiply = [&](u32 from, u32 to) {
        __syncthreads();
#pragma unroll 2
        for (u32 step = from; step < min(to, n); step++) {
            const float *from_left = left + step * PITCH_32 + down, *from_right = right + step * PITCH_32 + across;
            Four rows[2] = {*(const Four *)from_left, *(const Four *)(from_left + HALF)};
            Four columns[2] = {*(const Four *)from_right, *(const Four *)(from_right + HALF)};
#pragma unroll
            for (int i = 0; i < 8; i++)
#pragma unroll
                for (int j = 0; j < 8; j++) sum[i][j] += rows[i / 4].lane[i % 4] * columns[j / 4].lane[j % 4];
        }
    };
    wait_for_groups<3>();
    multiply(0, steps);
    wait_for_groups<2>();
    multiply(steps, 2 * steps);
    wait_for_groups<1>();
    multiply(2 * steps, 3 * steps);
    wait_for_groups<0>();
    multiply(3 * steps, n);
    if (threadIdx.x >= EDGE * EDGE) return;
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 8; j += 4) {
            u32 row = down + i / 4 * HALF + i % 4, column = across + j / 4 * HALF;
            float *to = out + row * n + column;
            if (row >= n) continue;
            if (n % 4 == 0 && column < n) {
                *(Four *)to = {sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]};
                continue;
            }
#pragma unroll
            for (int k = 0; k < 4; k++)
                if (column + k < n) to[k] = sum[i][j + k];
        }
}

// fp64, on tensor cores: seven warps, each with 16 rows. Slabs of both matrices are loaded two ahead of their use.

constexpr int THREADS_64 = 224, STAGES = 3, SLAB = 16, WIDE = SIDE / 8;
/// Padded, so that fragment loads have no bank conflicts.
constexpr int PITCH_A = SLAB + 4, PITCH_B = SIDE + 4;
constexpr int STAGE = SIDE * PITCH_A + SLAB * PITCH_B;

struct alignas(16) Two { double x, y; };

__device__ void multiply(double (&sum)[4], double upper, double lower, double right) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
                 : "d"(upper), "d"(lower), "d"(right));
#else
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+d"(sum[0]), "+d"(sum[1]) : "d"(upper), "d"(right));
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+d"(sum[2]), "+d"(sum[3]) : "d"(lower), "d"(right));
#endif
}

/// Copies `PACK` elements at a time, of which n is a multiple.
template <int PACK> __device__ void begin_slab(double *to, const double *a, const double *b, u32 n, u32 first) {
    constexpr u32 ACROSS = SLAB / PACK;
    for (u32 at = threadIdx.x; at < n * ACROSS; at += THREADS_64) {
        u32 line = at / ACROSS, step = at % ACROSS * PACK;
        bool is_there = first + step < n;
        begin_copy<8 * PACK>(to + line * PITCH_A + step, a + line * n + (is_there ? first + step : 0), is_there);
    }
    u32 across = n / PACK;
    for (u32 at = threadIdx.x; at < SLAB * across; at += THREADS_64) {
        u32 step = at / across, column = at % across * PACK;
        bool is_there = first + step < n;
        begin_copy<8 * PACK>(to + SIDE * PITCH_A + step * PITCH_B + column, b + (is_there ? first + step : 0) * n + column,
                             is_there);
    }
}

__device__ void multiply_64(double *out, const double *a, const double *b, u32 n) {
    extern __shared__ __align__(16) double shared_64[];
    u32 lane = threadIdx.x % 32, top = threadIdx.x / 32 * 16, slabs = (n + SLAB - 1) / SLAB;
    auto begin = [&](u32 slab) {
        double *to = shared_64 + slab % STAGES * STAGE;
        if (slab < slabs && n % 2 == 0) begin_slab<2>(to, a, b, n, slab * SLAB);
        if (slab < slabs && n % 2 == 1) begin_slab<1>(to, a, b, n, slab * SLAB);
        end_group();
    };
    begin(0);
    begin(1);
    double sum[WIDE][4] = {};
    for (u32 slab = 0; slab < slabs; slab++) {
        wait_for_groups<1>();
        __syncthreads();
        begin(slab + 2);
        const double *stage = shared_64 + slab % STAGES * STAGE;
        // The last warp reads 8 rows beyond A; their results are not written.
        const double *upper = stage + (top + lane / 4) * PITCH_A + lane % 4;
        const double *right = stage + SIDE * PITCH_A + lane % 4 * PITCH_B + lane / 4;
        u32 steps = min(SLAB, (n - slab * SLAB + 3) / 4 * 4);
        for (u32 step = 0; step < steps; step += 4)
#pragma unroll
            for (int j = 0; j < WIDE; j++)
                multiply(sum[j], upper[step], upper[step + 8 * PITCH_A], right[step * PITCH_B + 8 * j]);
    }
#pragma unroll
    for (int j = 0; j < WIDE; j++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            u32 row = top + lane / 4 + 8 * half, column = 8 * j + lane % 4 * 2;
            double *to = out + row * n + column;
            if (row >= n || column >= n) continue;
            if (n % 2 == 0) {
                *(Two *)to = {sum[j][2 * half], sum[j][2 * half + 1]};
            } else {
                to[0] = sum[j][2 * half];
                if (column + 1 < n) to[1] = sum[j][2 * half + 1];
            }
        }
}

extern "C" {
__global__ void __launch_bounds__(THREADS_32, 2)
    matmul_batched_fp32_104(float *out, const float *a, const float *b, u64 n) {
    u64 begin = blockIdx.x * n * n;
    multiply_32(out + begin, a + begin, b + begin, n);
}
__global__ void __launch_bounds__(THREADS_64, 2)
    matmul_batched_fp64_104(double *out, const double *a, const double *b, u64 n) {
    u64 begin = blockIdx.x * n * n;
    multiply_64(out + begin, a + begin, b + begin, n);
}
}
