// A program with a common defect: it writes where it has no memory. The driver ends it with Xid 31.

#include <cstdio>

__global__ void write(int *nowhere) { *nowhere = 1; }

int main() {
    write<<<1, 1>>>(reinterpret_cast<int *>(0x10));
    cudaError_t error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorString(error));
    return error == cudaSuccess;
}
