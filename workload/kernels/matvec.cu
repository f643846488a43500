// A matrix times vectors: a warp for each element of the result, whose lanes share the row. The host starts a warp for
// each row and vector, eight in a block.

typedef unsigned long long u64;

extern "C" __global__ void matvec(float *out, const float *matrix, const float *vectors, u64 rows, u64 columns,
                                  u64 count) {
    u64 warp = (u64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (warp >= rows * count) return;
    const float *row = matrix + warp % rows * columns, *vector = vectors + warp / rows * columns;
    float sum = 0;
    for (u64 at = threadIdx.x % 32; at < columns; at += 32) sum += row[at] * vector[at];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (threadIdx.x % 32 == 0) out[warp] = sum;
}
