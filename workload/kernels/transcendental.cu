// Costly functions, many for each element: computing is all that it does.

typedef unsigned long long u64;

extern "C" __global__ void transcendental(float *out, const float *a, u64 n, u64 rounds) {
    u64 index = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= n) return;
    float sum = 0;
    for (u64 round = 0; round < rounds; round++) {
        float x = a[index] + (float)round;
        sum += sinf(x) + expf(-x) + rsqrtf(1 + x * x);
    }
    out[index] = sum;
}
