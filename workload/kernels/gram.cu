// Products of small matrices with their own transposes, and the traces of those. A block makes one product: 400 threads
// with 25 elements each, out of the whole matrix in shared memory, where it stands with its rows upright so that
// neighbours read neighbours.

typedef unsigned long long u64;

constexpr int SIDE = 100;
constexpr int ACROSS = 20, EACH = SIDE / ACROSS;
// One more than a column has, so that neither writing nor reading meets the same bank.
constexpr int PITCH = SIDE + 1;

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

// A warp for each product.
__global__ void trace(float *out, const float *products) {
    const float *product = products + (u64)blockIdx.x * SIDE * SIDE;
    float sum = 0;
    for (int at = threadIdx.x; at < SIDE; at += 32) sum += product[at * (SIDE + 1)];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
}
