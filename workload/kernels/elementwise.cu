// What a first kernel looks like: a thread per element, and a check that it has one.

typedef unsigned long long u64;

#define VECTOR_ADD(name, T)                                                                                           \
    __global__ void name(T *out, const T *a, const T *b, u64 n) {                                                     \
        u64 index = (u64)blockIdx.x * blockDim.x + threadIdx.x;                                                       \
        if (index < n) out[index] = a[index] + b[index];                                                              \
    }

#define TRIG(name, T, SINCOS)                                                                                         \
    __global__ void name(T *out, const T *a, u64 n) {                                                                 \
        u64 index = (u64)blockIdx.x * blockDim.x + threadIdx.x;                                                       \
        if (index < n) {                                                                                              \
            T cosine, sine;                                                                                           \
            SINCOS(a[index], &sine, &cosine);                                                                         \
            out[index] = cosine * cosine + sine * sine;                                                               \
        }                                                                                                             \
    }

#define SQUARE(name, T)                                                                                               \
    __global__ void name(T *out, const T *a, u64 n) {                                                                 \
        u64 index = (u64)blockIdx.x * blockDim.x + threadIdx.x;                                                       \
        if (index < n) out[index] = a[index] * a[index];                                                              \
    }

extern "C" {
VECTOR_ADD(vector_add_fp32, float)
VECTOR_ADD(vector_add_fp64, double)
TRIG(trig_fp32, float, sincosf)
TRIG(trig_fp64, double, sincos)
SQUARE(square_fp32, float)
SQUARE(square_fp64, double)
}
