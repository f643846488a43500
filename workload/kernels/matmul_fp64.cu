// Compiled for: compute_80.
// C = A * B of 64-bit numbers by the tensor cores that came before Hopper's. A lies row by row and B column by column,
// so that both have k side by side. The host pads each matrix to whole tiles, with zeros where it ends, so that nothing
// here looks where that is.
//
// A block of four warps computes a tile of 64 x 64, each warp 32 x 32 of it. Slabs of 16 k are fetched two ahead of
// their use.

typedef unsigned long long u64;
typedef unsigned u32;

constexpr int SIDE = 64, THREADS = 128, STAGES = 3, SLAB = 16;
/// Rows of shared memory are longer than what is in them, so that neighbours lie in different banks.
constexpr int PITCH = SLAB + 2;
constexpr int STAGE = 2 * SIDE * PITCH;

struct alignas(16) Two { double x, y; };

__device__ void fetch(double *to, const double *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from)
                 : "memory");
}
__device__ void multiply(double (&sum)[2], double a, double b) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+d"(sum[0]), "+d"(sum[1])
                 : "d"(a), "d"(b));
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    matmul_fp64_tensor(double *out, const double *a, const double *b, u64 rows, u64 columns, u64 depth, u64 pitch,
                       u64 input_pitch) {
    extern __shared__ __align__(16) double shared[];
    u32 tiles = (columns + SIDE - 1) / SIDE, slabs = (depth + SLAB - 1) / SLAB;
    u64 y = blockIdx.x / tiles * SIDE, x = blockIdx.x % tiles * SIDE;
    u32 line = threadIdx.x / 8, pack = threadIdx.x % 8 * 2;
    const double *left_from = a + (y + line) * input_pitch + pack, *right_from = b + (x + line) * input_pitch + pack;
    auto fetch_slab = [&](u32 slab) {
        if (slab < slabs) {
            double *to = shared + slab % STAGES * STAGE + line * PITCH + pack;
#pragma unroll
            for (int i = 0; i < SIDE; i += 16) {
                fetch(to + i * PITCH, left_from + i * input_pitch);
                fetch(to + (SIDE + i) * PITCH, right_from + i * input_pitch);
            }
            left_from += SLAB;
            right_from += SLAB;
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 row = warp / 2 * 32 + lane / 4, column = warp % 2 * 32 + lane / 4;
    double sum[4][4][2] = {};
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) fetch_slab(i);
    for (u32 slab = 0; slab < slabs; slab++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
        fetch_slab(slab + STAGES - 1);
        const double *stage = shared + slab % STAGES * STAGE;
        // A thread takes the elements of k that lie side by side: any order of k is the same to a sum, as long as it is
        // the same on both sides.
#pragma unroll
        for (int k = 0; k < 4; k += 2) {
            Two left[4], right[4];
#pragma unroll
            for (int i = 0; i < 4; i++) left[i] = *(const Two *)(stage + (row + 8 * i) * PITCH + lane % 4 * 4 + k);
#pragma unroll
            for (int j = 0; j < 4; j++)
                right[j] = *(const Two *)(stage + (SIDE + column + 8 * j) * PITCH + lane % 4 * 4 + k);
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    multiply(sum[i][j], left[i].x, right[j].x);
                    multiply(sum[i][j], left[i].y, right[j].y);
                }
        }
    }
    double *place = out + (y + row) * pitch + x + warp % 2 * 32 + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) *(Two *)(place + 8 * i * pitch + 8 * j) = Two{sum[i][j][0], sum[i][j][1]};
}
