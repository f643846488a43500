// Compiled for: compute_80, compute_89.
// C = A * B by the tensor cores that came before Hopper's. A lies row by row and B column by column, so that both have k
// side by side. The host pads each matrix to whole tiles, with zeros where it ends, so that nothing here looks where
// that is.
//
// A block of eight warps computes a tile of 128 x 128, each warp 64 x 32 of it. Slabs of 64 bytes of k are fetched three
// ahead of their use. All types go the same way: an instruction takes 32 bytes of k of each row.

typedef unsigned long long u64;
typedef unsigned u32;
typedef unsigned short u16;

constexpr int SIDE = 128, THREADS = 256, STAGES = 4;
constexpr int SLAB_BYTES = 64;
/// Rows of shared memory are longer than what is in them, so that eight of them lie in different banks.
constexpr int PITCH_BYTES = SLAB_BYTES + 16;
constexpr int STAGE_BYTES = 2 * SIDE * PITCH_BYTES;

template <typename T> struct alignas(2 * sizeof(T)) Two { T x, y; };

__device__ void fetch(u32 to, const char *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ void read(u32 (&fragment)[4], u32 from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
                 : "r"(from));
}
__device__ u32 rounded_to_bf16(float first, float second) {
    u32 both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}
__device__ u32 rounded_to_fp16(float first, float second) {
    u32 both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}

#define MULTIPLY(T, c, what)                                                                                          \
    typedef T Sum;                                                                                                    \
    __device__ static void multiply(T(&sum)[4], const u32(&a)[4], u32 b0, u32 b1) {                                   \
        asm volatile("mma.sync.aligned." what " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                 \
                     : "+" c(sum[0]), "+" c(sum[1]), "+" c(sum[2]), "+" c(sum[3])                                     \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                                 \
    }

struct Bf16 {
    typedef u16 Out;
    typedef u32 Pair;
    static constexpr int WIDTH = 2;
    MULTIPLY(float, "f", "m16n8k16.row.col.f32.bf16.bf16.f32")
    __device__ static Pair pair(float first, float second) { return rounded_to_bf16(first, second); }
};
struct Fp16 {
    typedef u16 Out;
    typedef u32 Pair;
    static constexpr int WIDTH = 2;
    MULTIPLY(float, "f", "m16n8k16.row.col.f32.f16.f16.f32")
    __device__ static Pair pair(float first, float second) { return rounded_to_fp16(first, second); }
};
struct Tf32 {
    typedef float Out;
    typedef Two<float> Pair;
    static constexpr int WIDTH = 4;
    MULTIPLY(float, "f", "m16n8k8.row.col.f32.tf32.tf32.f32")
    __device__ static Pair pair(float first, float second) { return {first, second}; }
};
struct Int8 {
    typedef int Out;
    typedef Two<int> Pair;
    static constexpr int WIDTH = 1;
    MULTIPLY(int, "r", "m16n8k32.row.col.s32.s8.s8.s32")
    __device__ static Pair pair(int first, int second) { return {first, second}; }
};
#if __CUDA_ARCH__ >= 890
struct Fp8 {
    typedef u16 Out;
    typedef u32 Pair;
    static constexpr int WIDTH = 1;
    MULTIPLY(float, "f", "m16n8k32.row.col.f32.e4m3.e4m3.f32")
    __device__ static Pair pair(float first, float second) { return rounded_to_bf16(first, second); }
};
#endif

template <typename Type>
__device__ void product(typename Type::Out *out, const char *a, const char *b, u64 rows, u64 columns, u64 depth, u64 pitch,
                        u64 input_pitch) {
    extern __shared__ __align__(16) char shared[];
    u32 base = (u32)__cvta_generic_to_shared(shared);

    // Tiles that are computed at the same time lie in bands of eight, so that they find each other's inputs in the cache.
    constexpr u32 BAND = 8;
    u32 down = (rows + SIDE - 1) / SIDE, across = (columns + SIDE - 1) / SIDE;
    u32 first = blockIdx.x / (BAND * across) * BAND, high = min(BAND, down - first);
    u32 inside = blockIdx.x - first * across;
    u64 y = (first + inside % high) * SIDE, x = inside / high * SIDE;

    u64 row_bytes = input_pitch * Type::WIDTH;
    u32 slabs = (depth * Type::WIDTH + SLAB_BYTES - 1) / SLAB_BYTES;
    u32 line = threadIdx.x / 4, pack = threadIdx.x % 4 * 16;
    const char *left_from = a + (y + line) * row_bytes + pack;
    const char *right_from = b + (x + line) * row_bytes + pack;
    auto fetch_slab = [&](u32 slab) {
        if (slab < slabs) {
            u32 to = base + slab % STAGES * STAGE_BYTES + line * PITCH_BYTES + pack;
#pragma unroll
            for (int half = 0; half < 2; half++) {
                fetch(to + half * 64 * PITCH_BYTES, left_from + half * 64 * row_bytes);
                fetch(to + (SIDE + half * 64) * PITCH_BYTES, right_from + half * 64 * row_bytes);
            }
            left_from += SLAB_BYTES;
            right_from += SLAB_BYTES;
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 row = warp / 4 * 64, column = warp % 4 * 32;
    typename Type::Sum sum[4][4][4] = {};
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) fetch_slab(i);
    for (u32 slab = 0; slab < slabs; slab++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        fetch_slab(slab + STAGES - 1);
        u32 left_at = base + slab % STAGES * STAGE_BYTES + (row + lane % 16) * PITCH_BYTES + lane / 16 * 16;
        u32 right_at = base + slab % STAGES * STAGE_BYTES +
                       (SIDE + column + lane / 16 * 8 + lane % 8) * PITCH_BYTES + lane / 8 % 2 * 16;
#pragma unroll
        for (int step = 0; step < SLAB_BYTES; step += 32) {
            u32 left[4][4], right[2][4];
#pragma unroll
            for (int i = 0; i < 4; i++) read(left[i], left_at + 16 * i * PITCH_BYTES + step);
#pragma unroll
            for (int j = 0; j < 2; j++) read(right[j], right_at + 16 * j * PITCH_BYTES + step);
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    Type::multiply(sum[i][j], left[i], right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]);
        }
    }
    typename Type::Out *place = out + (y + row + lane / 4) * pitch + x + column + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                *(typename Type::Pair *)(place + (16 * i + 8 * half) * pitch + 8 * j) =
                    Type::pair(sum[i][j][2 * half], sum[i][j][2 * half + 1]);
}

#define PRODUCT(name, Type, BLOCKS)                                                                                   \
    __global__ void __launch_bounds__(THREADS, BLOCKS)                                                                \
        name(Type::Out *out, const char *a, const char *b, u64 rows, u64 columns, u64 depth, u64 pitch,               \
             u64 input_pitch) {                                                                                       \
        product<Type>(out, a, b, rows, columns, depth, pitch, input_pitch);                                           \
    }

extern "C" {
PRODUCT(matmul_bf16_tensor, Bf16, 2)
PRODUCT(matmul_fp16_tensor, Fp16, 2)
PRODUCT(matmul_tf32_tensor, Tf32, 2)
PRODUCT(matmul_int8_tensor, Int8, 2)
#if __CUDA_ARCH__ >= 890
// Shared memory of Ada has room for one block. Where the instruction is made of two of fp16 (sm_100), two would spill.
PRODUCT(matmul_fp8_tensor, Fp8, 1)
#endif
}
