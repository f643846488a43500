// Random data that anybody can make again: each element depends on the seed and its own index alone, so that the host
// checks a result without having seen the input. `numbers.rs` has the same in Rust.

typedef unsigned long long u64;

__device__ u64 bits(u64 seed, u64 index) {
    u64 word = seed + (index + 1) * 0x9e3779b97f4a7c15ull;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ull;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebull;
    return word ^ (word >> 31);
}

// From -1 to 1, in steps that the type holds exactly.
__device__ void store(float &out, u64 word) { out = (float)((long long)(word >> 40) - (1ll << 23)) / (1ll << 23); }
__device__ void store(double &out, u64 word) { out = (double)((long long)(word >> 11) - (1ll << 52)) / (1ll << 52); }
__device__ void store(u64 &out, u64 word) { out = word; }

template <typename T> __device__ void fill(T *out, u64 n, u64 seed) {
    u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 index = (u64)blockIdx.x * blockDim.x + threadIdx.x; index < n; index += stride)
        store(out[index], bits(seed, index));
}

extern "C" {
__global__ void random_fp32(float *out, u64 n, u64 seed) { fill(out, n, seed); }
__global__ void random_fp64(double *out, u64 n, u64 seed) { fill(out, n, seed); }
__global__ void random_u64(u64 *out, u64 n, u64 seed) { fill(out, n, seed); }
}
