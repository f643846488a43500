// Compiled for: sm_90a.
// C = A * B by Hopper's tensor cores. A lies row by row and B column by column, so that both have k side by side. The
// host pads each matrix to whole tiles, with zeros where it ends, so that nothing here looks where that is.
//
// A block stays on its multiprocessor and computes tile after tile. Its third warpgroup asks the copy engine for slabs
// of both inputs, 128 bytes of k each, into a ring of stages; the other two multiply what has come. `full` says that a
// stage is there, `empty` that both have done with it.

typedef unsigned long long u64;
typedef unsigned u32;
typedef unsigned short u16;

constexpr int DOWN = 128;
constexpr int SLAB_BYTES = 128;
constexpr int THREADS = 384;

/// A CUtensorMap, made by the host.
struct alignas(64) Map { char opaque[128]; };

template <typename T> struct alignas(2 * sizeof(T)) Two { T x, y; };

__device__ u32 shared_address(const void *place) { return (u32)__cvta_generic_to_shared(place); }

__device__ void init(u64 *barrier, u32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}
__device__ void expect(u64 *barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
                 : "memory");
}
__device__ void arrive(u64 *barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
__device__ void wait(u64 *barrier, u32 parity) {
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" ::"r"(shared_address(barrier)), "r"(parity) : "memory");
}
__device__ void copy_tile(void *to, const Map *from, u64 *barrier, u32 k, u32 row) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
                 ::"r"(shared_address(to)), "l"(from), "r"(shared_address(barrier)), "r"(k), "r"(row) : "memory");
}

/// The stages of a block in its shared memory, and where the ring stands.
template <int ACROSS, int STAGES> struct Ring {
    static constexpr u32 LEFT_BYTES = DOWN * SLAB_BYTES, RIGHT_BYTES = ACROSS * SLAB_BYTES;
    unsigned char *left, *right;
    u64 *full, *empty;
    u32 stage = 0, phase = 0;

    __device__ Ring(unsigned char *raw, u32 consumers) {
        // The pattern in which the copy engine lays a tile begins at every 1024 bytes.
        left = raw + (1024 - shared_address(raw) % 1024) % 1024;
        right = left + STAGES * LEFT_BYTES;
        full = (u64 *)(right + STAGES * RIGHT_BYTES);
        empty = full + STAGES;
        if (threadIdx.x == 0) {
            for (int i = 0; i < STAGES; i++) {
                init(full + i, 1);
                init(empty + i, consumers);
            }
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        __syncthreads();
    }
    __device__ void fetch(const Map &a, const Map &b, u32 k, u32 y, u32 x) {
        wait(empty + stage, phase ^ 1);
        expect(full + stage, LEFT_BYTES + RIGHT_BYTES);
        copy_tile(left + stage * LEFT_BYTES, &a, full + stage, k, y);
        copy_tile(right + stage * RIGHT_BYTES, &b, full + stage, k, x);
        advance();
    }
    __device__ void advance() {
        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    }
};

/// The tiles of a block. Those that are computed at the same time lie in bands of eight, so that they find each other's
/// inputs in the cache.
template <int ACROSS> struct Tiles {
    static constexpr u32 BAND = 8;
    u32 down, across, at = blockIdx.x, y = 0, x = 0;

    __device__ Tiles(u64 n) : down((n + DOWN - 1) / DOWN), across((n + ACROSS - 1) / ACROSS) {}
    __device__ bool next() {
        if (at >= down * across) return false;
        u32 first = at / (BAND * across) * BAND, high = min(BAND, down - first), inside = at - first * across;
        y = (first + inside % high) * DOWN;
        x = inside / high * ACROSS;
        at += gridDim.x;
        return true;
    }
};

// wgmma names all registers of the sum, 64 or 128 of them.
#define FOUR(c, i) c(sum[i]), c(sum[i + 1]), c(sum[i + 2]), c(sum[i + 3])
#define SIXTEEN(c, i) FOUR(c, i), FOUR(c, i + 4), FOUR(c, i + 8), FOUR(c, i + 12)
#define SUMS_64(c, i) SIXTEEN(c, i), SIXTEEN(c, i + 16), SIXTEEN(c, i + 32), SIXTEEN(c, i + 48)
#define NAMES_64                                                                                                      \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,"    \
    "%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,"  \
    "%58,%59,%60,%61,%62,%63"
#define NAMES_128                                                                                                     \
    NAMES_64                                                                                                          \
    ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,"     \
    "%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,"   \
    "%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define MULTIPLY(T, c, k, types, flags)                                                                               \
    __device__ static void multiply(T(&sum)[64], u64 a, u64 b) {                                                      \
        asm volatile("wgmma.mma_async.sync.aligned.m64n128" k types " {" NAMES_64 "}, %64, %65, 1" flags ";"            \
                     : SUMS_64(c, 0)                                                                                  \
                     : "l"(a), "l"(b));                                                                               \
    }                                                                                                                 \
    __device__ static void multiply(T(&sum)[128], u64 a, u64 b) {                                                     \
        asm volatile("wgmma.mma_async.sync.aligned.m64n256" k types " {" NAMES_128 "}, %128, %129, 1" flags ";"         \
                     : SUMS_64(c, 0), SUMS_64(c, 64)                                                                  \
                     : "l"(a), "l"(b));                                                                               \
    }

__device__ u32 rounded_to_bf16(float first, float second) {
    u32 both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}
__device__ u32 rounded_to_fp16(float first, float second) {
    u32 both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}

struct Bf16 {
    typedef float Sum;
    typedef u16 Out;
    typedef u32 Pair;
    static constexpr int SLAB = 64;
    MULTIPLY(float, "+f", "k16", ".f32.bf16.bf16", ", 1, 1, 0, 0")
    __device__ static Pair pair(float first, float second) { return rounded_to_bf16(first, second); }
};
struct Fp16 {
    typedef float Sum;
    typedef u16 Out;
    typedef u32 Pair;
    static constexpr int SLAB = 64;
    MULTIPLY(float, "+f", "k16", ".f32.f16.f16", ", 1, 1, 0, 0")
    __device__ static Pair pair(float first, float second) { return rounded_to_fp16(first, second); }
};
struct Tf32 {
    typedef float Sum;
    typedef float Out;
    typedef Two<float> Pair;
    static constexpr int SLAB = 32;
    MULTIPLY(float, "+f", "k8", ".f32.tf32.tf32", ", 1, 1")
    __device__ static Pair pair(float first, float second) { return {first, second}; }
};
struct Fp8 {
    typedef float Sum;
    typedef u16 Out;
    typedef u32 Pair;
    static constexpr int SLAB = 128;
    MULTIPLY(float, "+f", "k32", ".f32.e4m3.e4m3", ", 1, 1")
    __device__ static Pair pair(float first, float second) { return rounded_to_bf16(first, second); }
};
struct Int8 {
    typedef int Sum;
    typedef int Out;
    typedef Two<int> Pair;
    static constexpr int SLAB = 128;
    MULTIPLY(int, "+r", "k32", ".s32.s8.s8", "")
    __device__ static Pair pair(int first, int second) { return {first, second}; }
};

/// What wgmma takes for a tile whose rows are 128 bytes long, laid out by the copy engine's pattern of that length.
__device__ u64 tile_descriptor(const void *tile) {
    constexpr u64 EIGHT_ROWS = 1024 >> 4, PATTERN_OF_128_BYTES = 1;
    return (u64)(shared_address(tile) >> 4) | 1ull << 16 | EIGHT_ROWS << 32 | PATTERN_OF_128_BYTES << 62;
}

template <typename Type, int ACROSS, int STAGES>
__device__ void tensor_product(typename Type::Out *out, const Map &a, const Map &b, u64 n, u64 pitch) {
    extern __shared__ unsigned char raw[];
    Ring<ACROSS, STAGES> ring(raw, 2);
    Tiles<ACROSS> tiles(n);
    u32 warpgroup = threadIdx.x / 128, slabs = (n + Type::SLAB - 1) / Type::SLAB;
    if (warpgroup == 2) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 256)
            while (tiles.next())
                for (u32 slab = 0; slab < slabs; slab++) ring.fetch(a, b, slab * Type::SLAB, tiles.y, tiles.x);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        while (tiles.next()) {
            typename Type::Sum sum[ACROSS / 2];
#pragma unroll
            for (int i = 0; i < ACROSS / 2; i++) sum[i] = 0;
            u32 before = 0;
            for (u32 slab = 0; slab < slabs; slab++) {
                wait(ring.full + ring.stage, ring.phase);
                u64 left = tile_descriptor(ring.left + ring.stage * ring.LEFT_BYTES + warpgroup * 64 * SLAB_BYTES);
                u64 right = tile_descriptor(ring.right + ring.stage * ring.RIGHT_BYTES);
                asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
                // An instruction takes 32 bytes of k.
#pragma unroll
                for (int step = 0; step < SLAB_BYTES / 32; step++) Type::multiply(sum, left + 2 * step, right + 2 * step);
                asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
                // The slab before this one has been multiplied.
                asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
                if (slab > 0 && threadIdx.x % 128 == 0) arrive(ring.empty + before);
                before = ring.stage;
                ring.advance();
            }
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
            if (threadIdx.x % 128 == 0) arrive(ring.empty + before);
            u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
            typename Type::Out *place = out + (tiles.y + warp * 16 + lane / 4) * pitch + tiles.x + lane % 4 * 2;
#pragma unroll
            for (int half = 0; half < 2; half++)
#pragma unroll
                for (int j = 0; j < ACROSS / 8; j++)
                    *(typename Type::Pair *)(place + half * 8 * pitch + 8 * j) =
                        Type::pair(sum[4 * j + 2 * half], sum[4 * j + 2 * half + 1]);
        }
    }
}

// 64 bits: a warp multiplies what it has read into registers itself, 16 rows of A with all of the tile's B.

/// 16 bytes of a row of a tile, which lie where the copy engine's pattern has them.
__device__ Two<double> two_of(const unsigned char *tile, u32 row, u32 pack) {
    return *(const Two<double> *)(tile + row * SLAB_BYTES + ((pack ^ row % 8) << 4));
}
__device__ void multiply(double (&sum)[4], const Two<double> (&upper)[2], const Two<double> (&lower)[2],
                         const Two<double> (&right)[2]) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, "
                 "{%12,%13,%14,%15}, {%0,%1,%2,%3};"
                 : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
                 : "d"(upper[0].x), "d"(lower[0].x), "d"(upper[0].y), "d"(lower[0].y), "d"(upper[1].x),
                   "d"(lower[1].x), "d"(upper[1].y), "d"(lower[1].y), "d"(right[0].x), "d"(right[0].y),
                   "d"(right[1].x), "d"(right[1].y));
}

template <int ACROSS, int STAGES>
__device__ void product_of_doubles(double *out, const Map &a, const Map &b, u64 n, u64 pitch) {
    constexpr int SLAB = SLAB_BYTES / 8;
    extern __shared__ unsigned char raw[];
    Ring<ACROSS, STAGES> ring(raw, 8);
    Tiles<ACROSS> tiles(n);
    u32 slabs = (n + SLAB - 1) / SLAB;
    if (threadIdx.x >= 256) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 256)
            while (tiles.next())
                for (u32 slab = 0; slab < slabs; slab++) ring.fetch(a, b, slab * SLAB, tiles.y, tiles.x);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        while (tiles.next()) {
            double sum[ACROSS / 8][4] = {};
            for (u32 slab = 0; slab < slabs; slab++) {
                wait(ring.full + ring.stage, ring.phase);
                const unsigned char *left = ring.left + ring.stage * ring.LEFT_BYTES;
                const unsigned char *right = ring.right + ring.stage * ring.RIGHT_BYTES;
                // A thread takes the elements of k that lie side by side: any order of k is the same to a sum, as long
                // as it is the same on both sides.
                u32 row = warp * 16 + lane / 4, pack = lane % 4 * 2;
                Two<double> upper[2] = {two_of(left, row, pack), two_of(left, row, pack + 1)};
                Two<double> lower[2] = {two_of(left, row + 8, pack), two_of(left, row + 8, pack + 1)};
#pragma unroll
                for (int j = 0; j < ACROSS / 8; j++) {
                    u32 column = 8 * j + lane / 4;
                    Two<double> both[2] = {two_of(right, column, pack), two_of(right, column, pack + 1)};
                    multiply(sum[j], upper, lower, both);
                }
                __syncwarp();
                if (lane == 0) arrive(ring.empty + ring.stage);
                ring.advance();
            }
            double *place = out + (tiles.y + warp * 16 + lane / 4) * pitch + tiles.x + lane % 4 * 2;
#pragma unroll
            for (int half = 0; half < 2; half++)
#pragma unroll
                for (int j = 0; j < ACROSS / 8; j++)
                    *(Two<double> *)(place + half * 8 * pitch + 8 * j) = {sum[j][2 * half], sum[j][2 * half + 1]};
        }
    }
}

#define KERNEL(name, Out, call)                                                                                       \
    __global__ void __launch_bounds__(THREADS, 1) name(Out *out, const __grid_constant__ Map a,                       \
                                                       const __grid_constant__ Map b, u64 n, u64 pitch) {             \
        call(out, a, b, n, pitch);                                                                                    \
    }
#define TENSOR(name, Type)                                                                                            \
    KERNEL(name##_128x256, Type::Out, (tensor_product<Type, 256, 4>))                                                 \
    KERNEL(name##_128x128, Type::Out, (tensor_product<Type, 128, 6>))

extern "C" {
TENSOR(matmul_bf16, Bf16)
TENSOR(matmul_fp16, Fp16)
TENSOR(matmul_tf32, Tf32)
TENSOR(matmul_fp8, Fp8)
TENSOR(matmul_int8, Int8)
KERNEL(matmul_fp64_128x64, double, (product_of_doubles<64, 8>))
}
