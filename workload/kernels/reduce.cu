// The sum of an array: one of each block, and then the same kernel once more over those. All loads of a thread's turn
// are under way before the first is used.

typedef unsigned long long u64;

constexpr int SEVERAL = 4;

template <typename T> struct alignas(16) Pack { T lane[16 / sizeof(T)]; };

template <typename T> __device__ void reduce(T *out, const T *a, u64 n) {
    constexpr int LANES = 16 / sizeof(T);
    __shared__ T warps[32];
    u64 packs = n / LANES, stride = (u64)gridDim.x * blockDim.x;
    u64 thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    const Pack<T> *packed = (const Pack<T> *)a;
    T sums[SEVERAL][LANES] = {};
    u64 at = thread;
    for (; at + (SEVERAL - 1) * stride < packs; at += SEVERAL * stride) {
        Pack<T> pack[SEVERAL];
#pragma unroll
        for (int i = 0; i < SEVERAL; i++) pack[i] = packed[at + i * stride];
#pragma unroll
        for (int i = 0; i < SEVERAL; i++)
#pragma unroll
            for (int lane = 0; lane < LANES; lane++) sums[i][lane] += pack[i].lane[lane];
    }
    for (; at < packs; at += stride)
#pragma unroll
        for (int lane = 0; lane < LANES; lane++) sums[0][lane] += packed[at].lane[lane];
    // What does not fill a pack.
    if (thread < n % LANES) sums[0][0] += a[packs * LANES + thread];
    T sum = 0;
#pragma unroll
    for (int i = 0; i < SEVERAL; i++)
#pragma unroll
        for (int lane = 0; lane < LANES; lane++) sum += sums[i][lane];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < blockDim.x / 32; warp++) sum += warps[warp];
        out[blockIdx.x] = sum;
    }
}

extern "C" {
__global__ void reduce_fp32(float *out, const float *a, u64 n) { reduce(out, a, n); }
__global__ void reduce_fp64(double *out, const double *a, u64 n) { reduce(out, a, n); }
}
