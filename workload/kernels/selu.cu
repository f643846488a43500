// SELU, an activation of neural networks: as a framework's operations, each a kernel that goes through the array, and as
// one kernel that does all of them in one pass.

typedef unsigned long long u64;

struct alignas(16) Four { float lane[4]; };

#define EACH(index)                                                                                                   \
    u64 index = (u64)blockIdx.x * blockDim.x + threadIdx.x;                                                           \
    if (index < n)

extern "C" {
__global__ void op_exp(float *out, const float *a, u64 n) { EACH(at) out[at] = expf(a[at]); }
__global__ void op_multiply(float *out, const float *a, float by, u64 n) { EACH(at) out[at] = a[at] * by; }
__global__ void op_subtract(float *out, const float *a, float by, u64 n) { EACH(at) out[at] = a[at] - by; }
__global__ void op_is_positive(unsigned char *out, const float *a, u64 n) { EACH(at) out[at] = a[at] > 0; }
__global__ void op_select(float *out, const unsigned char *which, const float *a, const float *b, u64 n) {
    EACH(at) out[at] = which[at] ? a[at] : b[at];
}

// A thread has four elements: a million in threads of their own take a quarter longer to be handed out.
__global__ void selu(float *out, const float *a, float alpha, float scale, u64 n) {
    auto of = [&](float x) { return (x > 0 ? x : expf(x) * alpha - alpha) * scale; };
    EACH(pack) {
        u64 at = pack * 4;
        if (at + 4 <= n) {
            Four four = *(const Four *)(a + at);
            for (float &x : four.lane) x = of(x);
            *(Four *)(out + at) = four;
        } else {
            for (; at < n; at++) out[at] = of(a[at]);
        }
    }
}
}
