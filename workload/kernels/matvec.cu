// A matrix times vectors: a warp for each element of the result, whose lanes share the row. The host starts a warp for
// each row and vector, eight in a block.

typedef unsigned long long u64;

extern "C" __global__ void matvec(float *out, const float *matrix, const float *vectors, u64 rows, u64 columns,
                                  u64 count) {
    u64 warp = (u64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (warp >= rows * count) return;
    const float *row = matrix + warp % rows * columns, *vector = vectors + warp / rows * columns;
    float sum = 0;
    // Four loads of each are under way before the first is used.
    constexpr int LOADS = 4;
    for (u64 first = threadIdx.x % 32; first < columns; first += LOADS * 32) {
        float left[LOADS] = {}, right[LOADS] = {};
#pragma unroll
        for (int i = 0; i < LOADS; i++) {
            u64 at = first + i * 32;
            if (at < columns) left[i] = row[at], right[i] = vector[at];
        }
#pragma unroll
        for (int i = 0; i < LOADS; i++) sum += left[i] * right[i];
    }
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (threadIdx.x % 32 == 0) out[warp] = sum;
}
