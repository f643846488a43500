// Random matrices, and the check of a product: every element is computed again, in 64 bits, or of 64 bits in twice as
// many, by nothing that the product itself was computed with.

typedef unsigned long long u64;
typedef unsigned u32;
typedef unsigned char u8;
typedef unsigned short u16;

__device__ u64 bits(u64 seed, u64 index) {
    u64 word = seed + (index + 1) * 0x9e3779b97f4a7c15ull;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9ull;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebull;
    return word ^ (word >> 31);
}
/// From -1 to 1, as `random.cu` has it.
__device__ float number(u64 word) { return (float)((long long)(word >> 40) - (1ll << 23)) / (1ll << 23); }

/// The nearest number with so many bits of fraction less than 23; between two, that whose last bit is 0.
template <int DROPPED> __device__ float rounded(float value) {
    u32 word = __float_as_uint(value);
    return __uint_as_float((word + ((1u << (DROPPED - 1)) - 1) + (word >> DROPPED & 1)) & ~((1u << DROPPED) - 1));
}

struct Fp64 {
    typedef double In;
    typedef double Out;
    __device__ static In of(u64 word) { return (double)((long long)(word >> 11) - (1ll << 52)) / (1ll << 52); }
    __device__ static double value(In in) { return in; }
    __device__ static double result(Out out) { return out; }
};
struct Fp32 {
    typedef float In;
    typedef float Out;
    __device__ static In of(u64 word) { return number(word); }
    __device__ static double value(In in) { return in; }
    __device__ static double result(Out out) { return out; }
};
struct Tf32 : Fp32 {
    __device__ static In of(u64 word) { return rounded<13>(number(word)); }
};
struct Bf16 {
    typedef u16 In;
    typedef u16 Out;
    __device__ static In of(u64 word) { return __float_as_uint(rounded<16>(number(word))) >> 16; }
    __device__ static double value(In in) { return __uint_as_float((u32)in << 16); }
    __device__ static double result(Out out) { return value(out); }
};
struct Fp16 {
    typedef u16 In;
    typedef u16 Out;
    __device__ static In of(u64 word) {
        In half;
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(number(word)));
        return half;
    }
    __device__ static double value(In in) {
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(in));
        return value;
    }
    __device__ static double result(Out out) { return value(out); }
};
/// e4m3: a sign, 4 bits of exponent with 7 for 1, 3 bits of fraction; below 1/64 in steps of 1/512.
struct Fp8 {
    typedef u8 In;
    typedef u16 Out;
    __device__ static In of(u64 word) {
        float value = number(word), size = fabsf(value);
        u32 sign = value < 0 ? 0x80 : 0;
        if (size < 1.0f / 64) return sign | (u32)rintf(size * 512);
        return sign | ((__float_as_uint(rounded<20>(size)) >> 20) - (127 - 7) * 8);
    }
    __device__ static double value(In in) {
        u32 size = in & 0x7f;
        float value = size < 8 ? size / 512.0f : __uint_as_float((size << 20) + ((127 - 7) << 23));
        return in & 0x80 ? -value : value;
    }
    __device__ static double result(Out out) { return Bf16::value(out); }
};
struct Int8 {
    typedef signed char In;
    typedef int Out;
    __device__ static In of(u64 word) { return (In)(word >> 56); }
    __device__ static double value(In in) { return in; }
    __device__ static double result(Out out) { return out; }
};

/// A matrix of random elements, so many lines of so many steps, and zeros around it up to what they are padded to.
template <typename Type>
__device__ void fill(typename Type::In *out, u64 lines, u64 depth, u64 padded_lines, u64 padded_depth, u64 row, u64 step,
                     u64 seed) {
    u64 stride = (u64)gridDim.x * blockDim.x, wide = step == 1 ? padded_depth : padded_lines;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < padded_lines * padded_depth; at += stride) {
        // What lies side by side is written side by side.
        u64 outer = at / wide, inner = at % wide;
        u64 line = step == 1 ? outer : inner, k = step == 1 ? inner : outer;
        bool is_inside = line < lines && k < depth;
        out[line * row + k * step] = is_inside ? Type::of(bits(seed, line * depth + k)) : typename Type::In(0);
    }
}

/// A sum in twice 64 bits: what rounding takes from `high` is kept in `low`.
struct Exact {
    double high = 0, low = 0, size = 0;
    __device__ void add(double a, double b) {
        // Each of these is rounded by itself, which plain operators leave to the compiler.
        double product = __dmul_rn(a, b), rest = __fma_rn(a, b, -product);
        double sum = __dadd_rn(high, product), part = __dadd_rn(sum, -high);
        low += __dadd_rn(high, -__dadd_rn(sum, -part)) + __dadd_rn(product, -part) + rest;
        high = sum;
        size += fabs(product);
    }
    __device__ double distance(double got) const { return fabs((got - high) - low); }
};
/// A sum in 64 bits, of products that 64 bits hold exactly.
struct Plain {
    double high = 0, size = 0;
    __device__ void add(double a, double b) {
        high += a * b;
        size += fabs(a * b);
    }
    __device__ double distance(double got) const { return fabs(got - high); }
};

/// What a block found: how many elements are wrong, which is the first, and how near the others came to their bounds.
struct Found {
    u64 wrong, first;
    double largest;
};

/// An element may be as far from its reference as `of_result` of that, `of_terms` of the sum of its terms' sizes, and
/// `least`, together.
template <typename Type, typename Sum>
__device__ void check(Found *out, const typename Type::Out *got, const typename Type::In *a, const typename Type::In *b,
                      u64 rows, u64 columns, u64 depth, u64 pitch, u64 row, u64 step, double of_result, double of_terms,
                      double least) {
    constexpr int EDGE = 16, EACH = 2, SIDE = EDGE * EACH;
    __shared__ double left[EDGE][SIDE + 1], right[EDGE][SIDE + 1];
    u64 tiles = (columns + SIDE - 1) / SIDE;
    u64 y = blockIdx.x / tiles * SIDE, x = blockIdx.x % tiles * SIDE;
    u32 down = threadIdx.x / EDGE, across = threadIdx.x % EDGE;
    Sum sum[EACH][EACH];
    for (u64 k = 0; k < depth; k += EDGE) {
        for (u32 at = threadIdx.x; at < EDGE * SIDE; at += EDGE * EDGE) {
            u32 inner = step == 1 ? at % EDGE : at / SIDE, line = step == 1 ? at / EDGE : at % SIDE;
            bool is_left = y + line < rows && k + inner < depth, is_right = x + line < columns && k + inner < depth;
            left[inner][line] = is_left ? Type::value(a[(y + line) * row + (k + inner) * step]) : 0.0;
            right[inner][line] = is_right ? Type::value(b[(x + line) * row + (k + inner) * step]) : 0.0;
        }
        __syncthreads();
#pragma unroll 4
        for (int inner = 0; inner < EDGE; inner++)
#pragma unroll
            for (int i = 0; i < EACH; i++)
#pragma unroll
                for (int j = 0; j < EACH; j++) sum[i][j].add(left[inner][down + EDGE * i], right[inner][across + EDGE * j]);
        __syncthreads();
    }
    __shared__ u64 wrong[EDGE * EDGE], first[EDGE * EDGE];
    __shared__ double largest[EDGE * EDGE];
    wrong[threadIdx.x] = 0;
    first[threadIdx.x] = ~0ull;
    largest[threadIdx.x] = 0;
    for (int i = EACH - 1; i >= 0; i--)
        for (int j = EACH - 1; j >= 0; j--) {
            u64 line = y + down + EDGE * i, column = x + across + EDGE * j;
            if (line >= rows || column >= columns) continue;
            double distance = sum[i][j].distance(Type::result(got[line * pitch + column]));
            double bound = of_result * fabs(sum[i][j].high) + of_terms * sum[i][j].size + least;
            // What is no number is within no bound.
            if (distance <= bound) {
                if (distance > 0) largest[threadIdx.x] = fmax(largest[threadIdx.x], distance / bound);
            } else {
                wrong[threadIdx.x]++;
                first[threadIdx.x] = min(first[threadIdx.x], line * columns + column);
            }
        }
    __syncthreads();
    if (threadIdx.x == 0) {
        Found found = {0, ~0ull, 0};
        for (int i = 0; i < EDGE * EDGE; i++) {
            found.wrong += wrong[i];
            found.first = min(found.first, first[i]);
            found.largest = fmax(found.largest, largest[i]);
        }
        out[blockIdx.x] = found;
    }
}

#define TYPE(name, Type, Sum)                                                                                         \
    __global__ void matmul_fill_##name(Type::In *out, u64 lines, u64 depth, u64 padded_lines, u64 padded_depth, u64 row,\
                                       u64 step, u64 seed) {                                                          \
        fill<Type>(out, lines, depth, padded_lines, padded_depth, row, step, seed);                                   \
    }                                                                                                                 \
    __global__ void __launch_bounds__(256)                                                                            \
        matmul_check_##name(Found *out, const Type::Out *got, const Type::In *a, const Type::In *b, u64 rows,         \
                            u64 columns, u64 depth, u64 pitch, u64 row, u64 step, double of_result,                   \
                            double of_terms, double least) {                                                          \
        check<Type, Sum>(out, got, a, b, rows, columns, depth, pitch, row, step, of_result, of_terms, least);         \
    }

extern "C" {
TYPE(fp64, Fp64, Exact)
TYPE(fp32, Fp32, Plain)
TYPE(tf32, Tf32, Plain)
TYPE(fp16, Fp16, Plain)
TYPE(bf16, Bf16, Plain)
TYPE(fp8, Fp8, Plain)
TYPE(int8, Int8, Plain)
}
