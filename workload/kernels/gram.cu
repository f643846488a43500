// Products of small matrices with their own transposes, and the traces of those.
//
// Of many at once, a block makes each: 400 threads with 25 elements each, out of the whole matrix in shared memory, where
// it stands with its rows upright so that neighbours read neighbours. One alone is cut into a hundred tiles with a block
// each, so that it takes as long as a tile does.

typedef unsigned long long u64;

constexpr int SIDE = 100;
constexpr int ACROSS = 20, EACH = SIDE / ACROSS;
// One more than a column has, so that neither writing nor reading meets the same bank.
constexpr int PITCH = SIDE + 1;

// Of a tile; a row of the matrix is read in packs of four.
constexpr int TILE = 10, TILES = SIDE / TILE, PACKS = SIDE / 4, ELEMENTS = TILE * TILE;

// Ten rows that stand one behind the other, by all threads of a block.
__device__ void fetch(float4 *rows, const float4 *from) {
#pragma unroll
    for (int at = 0; at < TILE * PACKS; at += ELEMENTS)
        if (at + threadIdx.x < TILE * PACKS) rows[at + threadIdx.x] = from[at + threadIdx.x];
}

extern "C" {
__global__ void __launch_bounds__(ACROSS *ACROSS) gram(float *out, const float *matrices) {
    __shared__ float upright[SIDE * PITCH];
    const float *matrix = matrices + (u64)blockIdx.x * SIDE * SIDE;
    for (int at = threadIdx.x; at < SIDE * SIDE; at += blockDim.x)
        upright[at % SIDE * PITCH + at / SIDE] = matrix[at];
    __syncthreads();
    int column = threadIdx.x % ACROSS, row = threadIdx.x / ACROSS;
    float sum[EACH][EACH] = {};
    for (int k = 0; k < SIDE; k++) {
        const float *slice = upright + k * PITCH;
        float left[EACH], right[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            left[i] = slice[row + i * ACROSS];
            right[i] = slice[column + i * ACROSS];
        }
#pragma unroll
        for (int i = 0; i < EACH; i++)
#pragma unroll
            for (int j = 0; j < EACH; j++) sum[i][j] += left[i] * right[j];
    }
    float *product = out + (u64)blockIdx.x * SIDE * SIDE;
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++) product[(row + i * ACROSS) * SIDE + column + j * ACROSS] = sum[i][j];
}

// A tile of one product for each block, an element for each thread. The blocks on the diagonal add up their parts of the
// trace, and the last of them all of the parts, always in the same order. `arrived` is 0 before and after.
__global__ void __launch_bounds__(ELEMENTS) gram_tiles(float *out, float *trace, const float4 *matrix, float *parts,
                                                       unsigned *arrived) {
    __shared__ float4 left[TILE * PACKS], right[TILE * PACKS];
    __shared__ float diagonal[TILE];
    int tile_row = blockIdx.x / TILES, tile_column = blockIdx.x % TILES;
    fetch(left, matrix + tile_row * TILE * PACKS);
    fetch(right, matrix + tile_column * TILE * PACKS);
    __syncthreads();
    int row = threadIdx.x / TILE, column = threadIdx.x % TILE;
    // Four sums, none of which waits for the others.
    float4 sum = {};
#pragma unroll
    for (int k = 0; k < PACKS; k++) {
        float4 a = left[row * PACKS + k], b = right[column * PACKS + k];
        sum.x += a.x * b.x, sum.y += a.y * b.y, sum.z += a.z * b.z, sum.w += a.w * b.w;
    }
    float element = (sum.x + sum.y) + (sum.z + sum.w);
    out[(tile_row * TILE + row) * SIDE + tile_column * TILE + column] = element;
    if (tile_row != tile_column) return;
    if (row == column) diagonal[row] = element;
    __syncthreads();
    if (threadIdx.x != 0) return;
    float part = 0;
    for (int at = 0; at < TILE; at++) part += diagonal[at];
    *(volatile float *)(parts + tile_row) = part;
    __threadfence();
    if (atomicInc(arrived, TILES - 1) != TILES - 1) return;
    __threadfence();
    float all = 0;
    for (int at = 0; at < TILES; at++) all += *(volatile float *)(parts + at);
    *trace = all;
}

// A warp for each product.
__global__ void trace(float *out, const float *products) {
    const float *product = products + (u64)blockIdx.x * SIDE * SIDE;
    float sum = 0;
    for (int at = threadIdx.x; at < SIDE; at += 32) sum += product[at * (SIDE + 1)];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
}
