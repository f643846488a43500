// Compiled for: compute_80, sm_90a.
// C = A * B of 32-bit numbers by the ordinary units. Both matrices lie k by k: the elements that one step of the sum
// needs lie side by side, so that they go to shared memory as they are, and from there to registers in packs of 16
// bytes. The host pads each matrix to whole tiles, with zeros where it ends, so that nothing here looks where that is.
// Steps of both lie equally far apart: another number for each costs registers, and with them a tenth of the speed.
//
// A block computes a tile, a warp of it 4 x 8 threads' parts, and a thread ROWS x COLUMNS elements in groups of four.
// Slabs of k are fetched STAGES - 1 ahead of their use; the next step's elements are read while this one is computed.

#include "parts.cuh"

typedef Four<float> Pack;

constexpr int THREADS = 256;
constexpr int WARPS_DOWN = 4, WARPS_ACROSS = 2;
/// The step of a slab in which a later one is asked for: where the compiler makes the shortest code of it.
constexpr int FETCH_AT = 11;

__device__ void fetch(float *to, const float *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((u32)__cvta_generic_to_shared(to)), "l"(from)
                 : "memory");
}

template <int ROWS, int COLUMNS, int SLAB, int STAGES>
__device__ void product(float *out, const float *a, const float *b, u64 rows, u64 columns, u64 depth, u64 out_pitch,
                        u64 pitch, const Cut &cut) {
    constexpr int DOWN = WARPS_DOWN * 4 * ROWS, ACROSS = WARPS_ACROSS * 8 * COLUMNS;
    constexpr int STAGE = (DOWN + ACROSS) * SLAB;
    constexpr int LEFT_PACKS = DOWN / 4, RIGHT_PACKS = ACROSS / 4;
    extern __shared__ __align__(16) float shared[];

    // Tiles that are computed at the same time lie in bands of eight, so that they find each other's inputs in the cache.
    constexpr u32 BAND = 8;
    u32 tiles_down = (rows + DOWN - 1) / DOWN, tiles_across = (columns + ACROSS - 1) / ACROSS;
    Piece piece(blockIdx.x, cut, (depth + SLAB - 1) / SLAB);
    u64 y, x;
    auto find = [&](u32 tile) {
        u32 first = tile / (BAND * tiles_across) * BAND, high = min(BAND, tiles_down - first);
        u32 inside = tile - first * tiles_across;
        y = (first + inside % high) * DOWN, x = (inside / high) * ACROSS;
    };
    find(piece.tile);

    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 row = warp / WARPS_ACROSS * (4 * ROWS) + lane / 8 * 4;
    u32 column = warp % WARPS_ACROSS * (8 * COLUMNS) + lane % 8 * 4;
    u32 slabs = piece.end - piece.first;
    a += piece.first * SLAB * pitch;
    b += piece.first * SLAB * pitch;
    const float *left_from = a + threadIdx.x / LEFT_PACKS * pitch + y + threadIdx.x % LEFT_PACKS * 4;
    const float *right_from = b + threadIdx.x / RIGHT_PACKS * pitch + x + threadIdx.x % RIGHT_PACKS * 4;

    // Where the stage begins that is read, and the one that is filled.
    u32 read_at = 0, fill_at = 0;
    auto after = [&](u32 at) { return at == (STAGES - 1) * STAGE ? 0 : at + STAGE; };
    auto fetch_slab = [&](u32 slab) {
        if (slab < slabs) {
            float *stage = shared + fill_at + threadIdx.x * 4;
#pragma unroll
            for (int i = 0; i < LEFT_PACKS * SLAB / THREADS; i++)
                fetch(stage + i * THREADS * 4, left_from + i * (THREADS / LEFT_PACKS) * pitch);
#pragma unroll
            for (int i = 0; i < RIGHT_PACKS * SLAB / THREADS; i++)
                fetch(stage + DOWN * SLAB + i * THREADS * 4, right_from + i * (THREADS / RIGHT_PACKS) * pitch);
            left_from += SLAB * pitch;
            right_from += SLAB * pitch;
        }
        fill_at = after(fill_at);
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    auto wait_for_slab = [&]() {
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads();
    };
    float left[2][ROWS], right[2][COLUMNS], sum[ROWS * COLUMNS] = {};
    auto read = [&](int k, int to) {
        const float *stage = shared + read_at;
#pragma unroll
        for (int i = 0; i < COLUMNS / 4; i++)
            *(Pack *)(right[to] + 4 * i) = *(const Pack *)(stage + DOWN * SLAB + k * ACROSS + column + 32 * i);
#pragma unroll
        for (int i = 0; i < ROWS / 4; i++)
            *(Pack *)(left[to] + 4 * i) = *(const Pack *)(stage + k * DOWN + row + 16 * i);
    };

#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) fetch_slab(i);
    wait_for_slab();
    read(0, 0);
    for (u32 slab = 0; slab < slabs; slab++) {
#pragma unroll
        for (int k = 0; k < SLAB; k++) {
            if (k == FETCH_AT) fetch_slab(slab + STAGES - 1);
            if (k + 1 < SLAB) {
                read(k + 1, (k + 1) % 2);
            } else {
                wait_for_slab();
                read_at = after(read_at);
                read(0, 0);
            }
            // Two columns at a time, down and up again, or two rows where there are fewer: so each product has an operand of
            // the one before, which is then not read from its bank of registers again.
            constexpr bool BY_ROWS = ROWS < 8;
            constexpr int LENGTH = BY_ROWS ? COLUMNS : ROWS, WIDTH = BY_ROWS ? ROWS : COLUMNS;
#pragma unroll
            for (int two = 0; two < WIDTH; two += 2)
#pragma unroll
                for (int step = 0; step < 2 * LENGTH; step++) {
                    const int along = step / 2, one = two / 2 % 2 ? LENGTH - 1 - along : along, other = two + (step + along) % 2;
                    const int i = BY_ROWS ? other : one, j = BY_ROWS ? one : other;
                    sum[i * COLUMNS + j] += left[k % 2][i] * right[k % 2][j];
                }
        }
    }
    // Found again, since it would take registers meanwhile.
    u32 block;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
    Piece done(block, cut, (depth + SLAB - 1) / SLAB);
    find(done.tile);
    auto leave_all = [&](u32 slot) { leave<THREADS>(cut.room<float>(slot, DOWN * ACROSS), threadIdx.x, sum); };
    auto add_all = [&](u32 slot) { add<THREADS>(cut.room<float>(slot, DOWN * ACROSS), threadIdx.x, sum); };
    if (!share<THREADS>(done, cut, threadIdx.x, 1, leave_all, add_all)) return;
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < COLUMNS / 4; j++)
            *(Pack *)(out + (y + row + i / 4 * 16 + i % 4) * out_pitch + x + column + 32 * j) = *(Pack *)(sum + i * COLUMNS + 4 * j);
}

#define PRODUCT(name, ROWS, COLUMNS, SLAB, STAGES, BLOCKS)                                                            \
    __global__ void __launch_bounds__(THREADS, BLOCKS)                                                                \
        name(float *out, const float *a, const float *b, u64 rows, u64 columns, u64 depth, u64 out_pitch, u64 pitch,  \
             unsigned char *parts, u64 whole, u64 parts_of_each) {                                                    \
        product<ROWS, COLUMNS, SLAB, STAGES>(out, a, b, rows, columns, depth, out_pitch, pitch,                       \
                                             {parts, (u32)whole, (u32)parts_of_each});                                \
    }

extern "C" {
PRODUCT(matmul_fp32_128x256, 8, 16, 16, 3, 1)
PRODUCT(matmul_fp32_128x128, 8, 8, 16, 3, 2)
PRODUCT(matmul_fp32_128x64, 8, 4, 16, 3, 2)
PRODUCT(matmul_fp32_64x256, 4, 16, 16, 3, 2)
PRODUCT(matmul_fp32_64x128, 4, 8, 16, 3, 2)
}
