// A stream of small kernels, each a launch of its own: the load that notices first when somebody disturbs the driver.
// Prints how many have finished and when (seconds of the monotonic clock), four times a second, until it is killed.

#include <cstdio>
#include <time.h>

__global__ void small(float *numbers) { numbers[threadIdx.x] = numbers[threadIdx.x] * 0.5f + 1.0f; }

static double now() {
    timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec * 1e-9;
}

int main() {
    const int BATCH = 500;
    float *numbers;
    if (cudaMalloc(&numbers, 32 * sizeof(float)) != cudaSuccess) {
        fprintf(stderr, "no GPU to run on\n");
        return 1;
    }
    long long finished = 0;
    double told = now();
    for (;;) {
        for (int at = 0; at < BATCH; at++) small<<<1, 32>>>(numbers);
        if (cudaDeviceSynchronize() != cudaSuccess) return 1;
        finished += BATCH;
        double at = now();
        if (at - told >= 0.25) {
            printf("%.6f %lld\n", at, finished);
            fflush(stdout);
            told = at;
        }
    }
}
