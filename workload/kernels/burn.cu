// Products of two matrices over and over, and whether all of them came out alike. Sides are multiples of 128. A block of
// 256 threads makes a tile of 128 x 128 of a product; the products lie one behind the other, and so do their tiles.

typedef unsigned long long u64;
typedef unsigned int u32;

constexpr int TILE = 128;
constexpr int DEPTH = 8;
constexpr int THREADS = 256;
// A thread makes four groups of 4 x 4 elements, whose rows and columns are half a tile apart: so the threads of a warp
// read neighbouring packs of shared memory.
constexpr int GROUP = 4;
constexpr int HALF = TILE / 2;

extern "C" {
__global__ void __launch_bounds__(THREADS) burn_product(float *out, const float *a, const float *b, u64 n, u64 count) {
    __shared__ alignas(16) float left[2][DEPTH][TILE], right[2][DEPTH][TILE];
    u64 across = n / TILE, tiles = across * across;
    u64 product = blockIdx.x / tiles, tile = blockIdx.x % tiles;
    if (product >= count) return;
    u64 row = tile / across * TILE, column = tile % across * TILE;
    int thread = threadIdx.x;

    // What a thread brings into shared memory: four neighbours of a row of each matrix.
    int a_row = thread / 2, a_depth = thread % 2 * 4;
    int b_depth = thread / 32, b_column = thread % 32 * 4;
    const float *from_a = a + (row + a_row) * n + a_depth;
    const float *from_b = b + b_depth * n + column + b_column;
    float4 next_a = *(const float4 *)from_a, next_b = *(const float4 *)from_b;

    int own_row = thread / 16 * GROUP, own_column = thread % 16 * GROUP;
    float sum[2][2][GROUP][GROUP];
#pragma unroll
    for (int i = 0; i < 2 * 2 * GROUP * GROUP; i++) (&sum[0][0][0][0])[i] = 0.0f;

    int side = 0;
    for (u64 depth = 0; depth < n; depth += DEPTH, side ^= 1) {
        left[side][a_depth + 0][a_row] = next_a.x;
        left[side][a_depth + 1][a_row] = next_a.y;
        left[side][a_depth + 2][a_row] = next_a.z;
        left[side][a_depth + 3][a_row] = next_a.w;
        *(float4 *)&right[side][b_depth][b_column] = next_b;
        __syncthreads();
        // The next part comes while this one is computed with. It goes to the other side, which everybody has left.
        if (depth + DEPTH < n) {
            next_a = *(const float4 *)(from_a + depth + DEPTH);
            next_b = *(const float4 *)(from_b + (depth + DEPTH) * n);
        }
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            float4 x[2], y[2];
#pragma unroll
            for (int half = 0; half < 2; half++) {
                x[half] = *(const float4 *)&left[side][k][own_row + half * HALF];
                y[half] = *(const float4 *)&right[side][k][own_column + half * HALF];
            }
#pragma unroll
            for (int down = 0; down < 2; down++)
#pragma unroll
                for (int over = 0; over < 2; over++)
#pragma unroll
                    for (int i = 0; i < GROUP; i++)
#pragma unroll
                        for (int j = 0; j < GROUP; j++)
                            sum[down][over][i][j] += (&x[down].x)[i] * (&y[over].x)[j];
        }
    }
    float *to = out + product * n * n;
#pragma unroll
    for (int down = 0; down < 2; down++)
#pragma unroll
        for (int i = 0; i < GROUP; i++)
#pragma unroll
            for (int over = 0; over < 2; over++) {
                float *group = sum[down][over][i];
                u64 at = (row + own_row + i + down * HALF) * n + column + own_column + over * HALF;
                *(float4 *)(to + at) = make_float4(group[0], group[1], group[2], group[3]);
            }
}

// Counts the words of `count` products that are not those of the first one, or no number, and leaves nothing in their
// place that is one: a product that is not written the next time is seen.
__global__ void burn_compare(u64 *wrong, u32 *products, const u32 *first, u64 words, u64 count) {
    u64 stride = (u64)gridDim.x * blockDim.x;
    u64 found = 0;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < words * count; at += stride) {
        u32 word = products[at];
        bool is_no_number = (word & 0x7fffffffu) > 0x7f800000u;
        found += word != first[at % words] || is_no_number;
        products[at] = 0xffffffffu;
    }
    if (found > 0) atomicAdd(wrong, found);
}
}
