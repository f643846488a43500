// Whether all of many products came out as the first did, to the bit and whatever their type: as words of 32 bits, of
// which a thread takes four at a time.

typedef unsigned long long u64;
typedef unsigned int u32;

struct alignas(16) Pack {
    u32 words[4];
};

// What no product has anywhere: read as floating point of any width it is no number, and as a whole number it is more
// than a sum of products of 8 bits comes to.
constexpr u32 POISON = 0x7fffffff;

extern "C" {
__global__ void burn_poison(Pack *products, u64 packs) {
    u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < packs; at += stride)
        products[at] = {POISON, POISON, POISON, POISON};
}

// Counts the words of `count` products, one behind the other, that are not those of the first one or were not written,
// and poisons them: a product that is not written the next time is seen. Each word of the first one is read once for all.
__global__ void burn_compare(u64 *wrong, Pack *__restrict__ products, const Pack *__restrict__ first, u64 packs,
                             u64 count) {
    u64 stride = (u64)gridDim.x * blockDim.x;
    u64 found = 0;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < packs; at += stride) {
        Pack right = first[at];
#pragma unroll 4
        for (u64 product = 0; product < count; product++) {
            Pack pack = products[product * packs + at];
#pragma unroll
            for (int i = 0; i < 4; i++) found += pack.words[i] != right.words[i] || pack.words[i] == POISON;
            products[product * packs + at] = {POISON, POISON, POISON, POISON};
        }
    }
    if (found > 0) atomicAdd(wrong, found);
}
}
