// The STREAM operations, and reading and writing alone: as fast as memory gives and takes. A thread moves packs of 16
// bytes, all of whose loads are under way before the first is used: several, where it reads two arrays or none, and one
// where it moves one array into another, which an H200 does 4 % faster that way. The host starts a block for every
// `blockDim.x` times so many packs.

typedef unsigned long long u64;

constexpr int SEVERAL = 4;

template <typename T> struct alignas(16) Pack { T lane[16 / sizeof(T)]; };

struct Copy {
    static constexpr bool A = true, B = false;
    template <typename T> __device__ static T of(T a, T, T) { return a; }
};
struct Scale {
    static constexpr bool A = true, B = false;
    template <typename T> __device__ static T of(T a, T, T scalar) { return scalar * a; }
};
struct Add {
    static constexpr bool A = true, B = true;
    template <typename T> __device__ static T of(T a, T b, T) { return a + b; }
};
struct Triad {
    static constexpr bool A = true, B = true;
    template <typename T> __device__ static T of(T a, T b, T scalar) { return a + scalar * b; }
};
struct Write {
    static constexpr bool A = false, B = false;
    template <typename T> __device__ static T of(T, T, T scalar) { return scalar; }
};

template <typename Op, typename T> __device__ void stream(T *out, const T *a, const T *b, T scalar, u64 n) {
    constexpr int LANES = 16 / sizeof(T);
    constexpr int PACKS = Op::A && !Op::B ? 1 : SEVERAL;
    u64 packs = n / LANES;
    u64 first = (u64)blockIdx.x * blockDim.x * PACKS + threadIdx.x;
    Pack<T> left[PACKS], right[PACKS];
#pragma unroll
    for (int i = 0; i < PACKS; i++) {
        u64 at = first + (u64)i * blockDim.x;
        if (at < packs) {
            if (Op::A) left[i] = ((const Pack<T> *)a)[at];
            if (Op::B) right[i] = ((const Pack<T> *)b)[at];
        }
    }
#pragma unroll
    for (int i = 0; i < PACKS; i++) {
        u64 at = first + (u64)i * blockDim.x;
        if (at < packs) {
            Pack<T> result;
#pragma unroll
            for (int lane = 0; lane < LANES; lane++)
                result.lane[lane] =
                    Op::of(Op::A ? left[i].lane[lane] : T(0), Op::B ? right[i].lane[lane] : T(0), scalar);
            ((Pack<T> *)out)[at] = result;
        }
    }
    // What does not fill a pack.
    u64 rest = packs * LANES + threadIdx.x;
    if (blockIdx.x == 0 && rest < n) out[rest] = Op::of(Op::A ? a[rest] : T(0), Op::B ? b[rest] : T(0), scalar);
}

// The sum of all words, of which no order of adding changes a bit: one for each block.
template <typename Word> __device__ void sum(u64 *out, const Word *a, u64 n) {
    constexpr int LANES = 16 / sizeof(Word);
    constexpr int PACKS = SEVERAL;
    __shared__ u64 warps[32];
    u64 packs = n / LANES;
    u64 first = (u64)blockIdx.x * blockDim.x * PACKS + threadIdx.x;
    Pack<Word> pack[PACKS];
#pragma unroll
    for (int i = 0; i < PACKS; i++) {
        u64 at = first + (u64)i * blockDim.x;
        pack[i] = at < packs ? ((const Pack<Word> *)a)[at] : Pack<Word>{};
    }
    u64 total = 0;
#pragma unroll
    for (int i = 0; i < PACKS; i++)
#pragma unroll
        for (int lane = 0; lane < LANES; lane++) total += pack[i].lane[lane];
    u64 rest = packs * LANES + threadIdx.x;
    if (blockIdx.x == 0 && rest < n) total += a[rest];
    for (int offset = 16; offset > 0; offset /= 2) total += __shfl_down_sync(0xffffffffu, total, offset);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < blockDim.x / 32; warp++) total += warps[warp];
        out[blockIdx.x] = total;
    }
}

#define STREAM(name, Op, T)                                                                                           \
    __global__ void name(T *out, const T *a, const T *b, T scalar, u64 n) { stream<Op>(out, a, b, scalar, n); }

extern "C" {
STREAM(stream_copy_fp32, Copy, float)
STREAM(stream_copy_fp64, Copy, double)
STREAM(stream_scale_fp32, Scale, float)
STREAM(stream_scale_fp64, Scale, double)
STREAM(stream_add_fp32, Add, float)
STREAM(stream_add_fp64, Add, double)
STREAM(stream_triad_fp32, Triad, float)
STREAM(stream_triad_fp64, Triad, double)
STREAM(stream_write_fp32, Write, float)
STREAM(stream_write_fp64, Write, double)
__global__ void stream_read_fp32(u64 *out, const unsigned *a, u64 n) { sum(out, a, n); }
__global__ void stream_read_fp64(u64 *out, const u64 *a, u64 n) { sum(out, a, n); }
}
