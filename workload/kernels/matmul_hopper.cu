// Compiled for: sm_90a.
// C = A * B by Hopper's tensor cores. A lies row by row and B column by column, so that both have k side by side. The
// host pads each matrix with zeros to multiples of 256, so that only tiles of 192 columns check where a row ends.
//
// A block stays on its multiprocessor and computes tile after tile. Its third warpgroup asks the copy engine for slabs
// of both inputs, 128 bytes of k each, into a ring of stages; the other two multiply what has come. `full` says that a
// stage is there, `empty` that those who multiply it have done with it. matmul.md beside this says how fast it is, and
// why.

#include "parts.cuh"

typedef unsigned short u16;

constexpr int SLAB_BYTES = 128;
constexpr int THREADS = 384;
/// Rows of A that are brought at a time. Those beyond the last 64 that have numbers are not, however high the tile is.
constexpr u32 COPIED_ROWS = 64;

/// Of a product: of the result, of the sums, and how far the result's rows are apart.
struct Extent { u64 rows, columns, depth, pitch; };

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

/// The pieces of a block. Tiles that are computed at the same time lie in bands of eight, so that they find each other's
/// inputs in the cache.
template <int DOWN, int ACROSS> struct Pieces {
    static constexpr u32 BAND = 8;
    u32 down, across, slabs, at = blockIdx.x, y = 0, x = 0;
    const Cut &cut;
    Piece piece;

    __device__ Pieces(const Extent &extent, u32 steps, const Cut &cut)
        : down((extent.rows + DOWN - 1) / DOWN), across((extent.columns + ACROSS - 1) / ACROSS),
          slabs((extent.depth + steps - 1) / steps), cut(cut), piece(0, cut, 0) {}
    __device__ bool next() {
        if (at >= cut.pieces(down * across)) return false;
        piece = Piece(at, cut, slabs);
        u32 first = piece.tile / (BAND * across) * BAND, high = min(BAND, down - first);
        u32 inside = piece.tile - first * across;
        y = (first + inside % high) * DOWN;
        x = inside / high * ACROSS;
        at += gridDim.x;
        return true;
    }
};

/// The stages of a block in its shared memory, with room for results behind them, and where the ring stands.
template <int DOWN, int ACROSS, int STAGES, int RESULT_BYTES> struct Ring {
    static constexpr u32 LEFT_BYTES = DOWN * SLAB_BYTES, RIGHT_BYTES = ACROSS * SLAB_BYTES;
    unsigned char *left, *right, *results;
    u64 *full, *empty;
    u32 stage = 0, phase = 0;

    __device__ Ring(unsigned char *raw, u32 consumers) {
        // The pattern in which the copy engine lays a tile begins at every 1024 bytes.
        left = raw + (1024 - shared_address(raw) % 1024) % 1024;
        right = left + STAGES * LEFT_BYTES;
        results = right + STAGES * RIGHT_BYTES;
        full = (u64 *)(results + RESULT_BYTES);
        empty = full + STAGES;
        if (threadIdx.x == 0) {
            for (int i = 0; i < STAGES; i++) {
                init(full + i, 1);
                init(empty + i, consumers);
            }
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        __syncthreads();
        // Programmatic dependent launch: the previous kernel may still write this one's inputs or its output.
        asm volatile("griddepcontrol.launch_dependents;\ngriddepcontrol.wait;" ::: "memory");
    }
    /// Fetches all slabs of all pieces, each as soon as there is room for it.
    __device__ void fetch(const Map &a, const Map &b, Pieces<DOWN, ACROSS> &pieces, u32 rows, u32 steps) {
        while (pieces.next()) {
            u32 high = min(DOWN, (rows - pieces.y + COPIED_ROWS - 1) / COPIED_ROWS * COPIED_ROWS);
            for (u32 slab = pieces.piece.first; slab < pieces.piece.end; slab++) {
                wait(empty + stage, phase ^ 1);
                expect(full + stage, high * SLAB_BYTES + RIGHT_BYTES);
#pragma unroll
                for (u32 row = 0; row < DOWN; row += COPIED_ROWS)
                    if (row < high)
                        copy_tile(left + stage * LEFT_BYTES + row * SLAB_BYTES, &a, full + stage, slab * steps, pieces.y + row);
                copy_tile(right + stage * RIGHT_BYTES, &b, full + stage, slab * steps, pieces.x);
                advance();
            }
        }
    }
    __device__ void advance() {
        if (++stage == STAGES) {
            stage = 0;
            phase ^= 1;
        }
    }
    __device__ void skip(u32 slabs) {
        stage += slabs;
        phase ^= stage / STAGES % 2;
        stage %= STAGES;
    }
};

// wgmma names all registers of the sum: 32, 64, 96 or 128 of them.
#define FOUR(c, i) c(sum[i]), c(sum[i + 1]), c(sum[i + 2]), c(sum[i + 3])
#define SIXTEEN(c, i) FOUR(c, i), FOUR(c, i + 4), FOUR(c, i + 8), FOUR(c, i + 12)
#define SUMS_32(c, i) SIXTEEN(c, i), SIXTEEN(c, i + 16)
#define SUMS_64(c, i) SUMS_32(c, i), SUMS_32(c, i + 32)
#define NAMES_32                                                                                                      \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,"    \
    "%30,%31"
#define NAMES_64                                                                                                      \
    NAMES_32                                                                                                          \
    ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59," \
    "%60,%61,%62,%63"
#define NAMES_96                                                                                                      \
    NAMES_64                                                                                                          \
    ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91," \
    "%92,%93,%94,%95"
#define NAMES_128                                                                                                     \
    NAMES_96                                                                                                          \
    ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,"  \
    "%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define WGMMA(shape, names, a, b, add, flags)                                                                         \
    "{\n.reg .pred add;\nsetp.ne.u32 add, " add ", 0;\nwgmma.mma_async.sync.aligned." shape " {" names "}, " a ", "       \
    b ", add" flags ";\n}"
// What the sum was before counts where `add` is not 0.
#define MULTIPLY(T, c, k, types, flags)                                                                               \
    __device__ static void multiply(T(&sum)[32], u64 a, u64 b, u32 add) {                                             \
        asm volatile(WGMMA("m64n64" k types, NAMES_32, "%32", "%33", "%34", flags)                                    \
                     : SUMS_32(c, 0)                                                                                  \
                     : "l"(a), "l"(b), "r"(add));                                                                     \
    }                                                                                                                 \
    __device__ static void multiply(T(&sum)[64], u64 a, u64 b, u32 add) {                                             \
        asm volatile(WGMMA("m64n128" k types, NAMES_64, "%64", "%65", "%66", flags)                                   \
                     : SUMS_64(c, 0)                                                                                  \
                     : "l"(a), "l"(b), "r"(add));                                                                     \
    }                                                                                                                 \
    __device__ static void multiply(T(&sum)[96], u64 a, u64 b, u32 add) {                                             \
        asm volatile(WGMMA("m64n192" k types, NAMES_96, "%96", "%97", "%98", flags)                                   \
                     : SUMS_64(c, 0), SUMS_32(c, 64)                                                                  \
                     : "l"(a), "l"(b), "r"(add));                                                                     \
    }                                                                                                                 \
    __device__ static void multiply(T(&sum)[128], u64 a, u64 b, u32 add) {                                            \
        asm volatile(WGMMA("m64n256" k types, NAMES_128, "%128", "%129", "%130", flags)                               \
                     : SUMS_64(c, 0), SUMS_64(c, 64)                                                                  \
                     : "l"(a), "l"(b), "r"(add));                                                                     \
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

struct alignas(16) Pack { u32 word[4]; };

/// A strip of a warp's results, 16 rows of 128 bytes. Fragments of a thread are two elements wide, and global memory is
/// written much faster in whole rows: so a strip is assembled in shared memory, in two alternating buffers for each warp.
/// Packs of 16 bytes are swizzled, so that neither writes nor reads have bank conflicts.
template <typename Type> struct Strip {
    typedef typename Type::Out Out;
    typedef typename Type::Pair Pair;
    static constexpr bool IS_NARROW = sizeof(Out) == 2;
    static constexpr int ROWS = 16, ROW_BYTES = 128, BYTES = ROWS * ROW_BYTES;
    static constexpr int WIDTH = ROW_BYTES / sizeof(Out), PACK = sizeof(Pack) / sizeof(Out), PAIRS = WIDTH / 4;

    /// Writes a thread's pairs of it; `out` is its first element, and `room` the shared memory for all warps.
    __device__ static void store(Out *out, unsigned char *room, int strip, const Pair *pairs, u64 pitch) {
        u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        unsigned char *half = room + (warp * 2 + strip % 2) * BYTES;
        __syncwarp();
#pragma unroll
        for (int two = 0; two < 8; two += 2) {
            const Pair *from = pairs + PACK / 4 * two;
            if constexpr (IS_NARROW) {
                u32 row = lane % 16, pack = (two + lane / 16) ^ row % 8;
                asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                             ::"r"(shared_address(half) + row * ROW_BYTES + pack * 16), "r"(from[0]), "r"(from[1]),
                               "r"(from[2]), "r"(from[3]) : "memory");
            } else {
                u32 row = lane / 4, pack = (two + lane % 4 / 2) ^ row % 4 * 2;
                unsigned char *to = half + row * ROW_BYTES + pack * 16 + lane % 2 * 8;
                *(Pair *)to = from[0];
                *(Pair *)(to + 8 * ROW_BYTES) = from[1];
            }
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < ROWS; i += 4) {
            u32 row = i + lane / 8, pack = lane % 8 ^ (IS_NARROW ? row % 8 : row % 4 * 2);
            *(Pack *)(out + row * pitch + lane % 8 * PACK) = *(const Pack *)(half + row * ROW_BYTES + pack * 16);
        }
    }
};

/// Two strips for each of the eight warps that multiply.
constexpr int RESULT_BYTES = 8 * 2 * Strip<Bf16>::BYTES;

/// A warp's results, 16 rows, until they are written.
template <typename Type, int ACROSS> struct Results {
    static constexpr int STRIPS = ACROSS / Strip<Type>::WIDTH;
    typename Type::Pair pairs[ACROSS / 4];
    typename Type::Out *out;
    u64 pitch;
    /// Columns from `out` to the end of the padded row, which a tile of 192 columns may exceed.
    u64 columns;
    int written = STRIPS;

    __device__ void take(typename Type::Out *to, const typename Type::Sum (&sum)[ACROSS / 2], u64 row_pitch, u64 within) {
#pragma unroll
        for (int i = 0; i < ACROSS / 4; i++) pairs[i] = Type::pair(sum[2 * i], sum[2 * i + 1]);
        out = to, pitch = row_pitch, columns = within, written = 0;
    }
    /// Writes the next strip, or all that are left.
    template <bool IS_ALL> __device__ void write(unsigned char *room) {
        typedef Strip<Type> Of;
#pragma unroll
        for (int strip = 0; strip < STRIPS; strip++)
            if ((IS_ALL ? strip >= written : strip == written) && Of::WIDTH * strip < columns)
                Of::store(out + Of::WIDTH * strip, room, strip, pairs + Of::PAIRS * strip, pitch);
        written = IS_ALL ? STRIPS : written + 1;
    }
};

__device__ void begin_slab() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void end_slab() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Waits until no more than so many slabs are still being multiplied.
template <int MOST> __device__ void wait_until_multiplied() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(MOST) : "memory");
}

/// Both warpgroups multiply a tile, each 64 rows of it: this moves the least, and so takes the least power. 16-bit results
/// stay in registers and are written strip by strip while the next tile is multiplied.
template <typename Type, int ACROSS, int STAGES>
__device__ void product_together(typename Type::Out *out, const Map &a, const Map &b, Extent extent, const Cut &cut) {
    constexpr int DOWN = 128;
    constexpr u32 MULTIPLYING = 256, SHARING = 1;
    constexpr bool IS_WRITTEN_LATER = sizeof(typename Type::Pair) == 4;
    extern __shared__ unsigned char raw[];
    Ring<DOWN, ACROSS, STAGES, RESULT_BYTES> ring(raw, 2);
    Pieces<DOWN, ACROSS> pieces(extent, Type::SLAB, cut);
    u32 warpgroup = threadIdx.x / 128;
    if (warpgroup == 2) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 256) ring.fetch(a, b, pieces, extent.rows, Type::SLAB);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        Results<Type, ACROSS> results;
        while (pieces.next()) {
            typename Type::Sum sum[ACROSS / 2];
            u32 before = 0, slabs = pieces.piece.end - pieces.piece.first;
            for (u32 slab = 0; slab < slabs; slab++) {
                wait(ring.full + ring.stage, ring.phase);
                u64 left = tile_descriptor(ring.left + ring.stage * ring.LEFT_BYTES + warpgroup * 64 * SLAB_BYTES);
                u64 right = tile_descriptor(ring.right + ring.stage * ring.RIGHT_BYTES);
                begin_slab();
                // An instruction takes 32 bytes of k.
#pragma unroll
                for (int step = 0; step < SLAB_BYTES / 32; step++)
                    Type::multiply(sum, left + 2 * step, right + 2 * step, step > 0 ? 1 : slab);
                end_slab();
                if (IS_WRITTEN_LATER && results.written < results.STRIPS) results.template write<false>(ring.results);
                // The slab before this one has been multiplied.
                wait_until_multiplied<1>();
                if (slab > 0 && threadIdx.x % 128 == 0) arrive(ring.empty + before);
                before = ring.stage;
                ring.advance();
            }
            if (IS_WRITTEN_LATER) results.template write<true>(ring.results);
            wait_until_multiplied<0>();
            if (threadIdx.x % 128 == 0) arrive(ring.empty + before);
            auto room = [&](u32 slot) { return cut.room<typename Type::Sum>(slot, DOWN * ACROSS); };
            auto leave_all = [&](u32 slot) { leave<MULTIPLYING>(room(slot), threadIdx.x, sum); };
            auto add_all = [&](u32 slot) { add<MULTIPLYING>(room(slot), threadIdx.x, sum); };
            if (!share<MULTIPLYING>(pieces.piece, cut, threadIdx.x, SHARING, leave_all, add_all)) continue;
            u32 y = pieces.y + threadIdx.x / 32 * Strip<Type>::ROWS;
            typename Type::Out *to = out + y * extent.pitch + pieces.x;
            if constexpr (IS_WRITTEN_LATER) {
                results.take(to, sum, extent.pitch, extent.pitch - pieces.x);
            } else {
                Results<Type, ACROSS> now;
                now.take(to, sum, extent.pitch, extent.pitch - pieces.x);
                now.template write<true>(ring.results);
            }
        }
        if (IS_WRITTEN_LATER) results.template write<true>(ring.results);
    }
}

/// The warpgroups take turns at tiles, so that one multiplies while the other writes what it has. Named barriers keep
/// the order: a phase of a stage looks like the one two rounds later, so that nobody may wait for more than the next.
template <typename Type, int STAGES>
__device__ void product_in_turns(typename Type::Out *out, const Map &a, const Map &b, Extent extent, const Cut &cut) {
    constexpr int DOWN = 128, ACROSS = 128;
    constexpr u32 WARPGROUP = 128, SHARING = 3;
    constexpr u64 LOWER_HALF = 64 * SLAB_BYTES >> 4;
    extern __shared__ unsigned char raw[];
    Ring<DOWN, ACROSS, STAGES, RESULT_BYTES> ring(raw, 1);
    Pieces<DOWN, ACROSS> pieces(extent, Type::SLAB, cut);
    u32 warpgroup = threadIdx.x / WARPGROUP, thread = threadIdx.x % WARPGROUP;
    if (warpgroup == 2) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 256) ring.fetch(a, b, pieces, extent.rows, Type::SLAB);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        u32 own_turn = 1 + warpgroup, other_turn = 2 - warpgroup;
        if (warpgroup == 1) asm volatile("bar.arrive %0, 256;" ::"r"(other_turn) : "memory");
        for (u32 turn = 0; pieces.next(); turn++) {
            u32 slabs = pieces.piece.end - pieces.piece.first;
            if (turn % 2 != warpgroup) {
                ring.skip(slabs);
                continue;
            }
            asm volatile("bar.sync %0, 256;" ::"r"(own_turn) : "memory");
            typename Type::Sum upper[ACROSS / 2], lower[ACROSS / 2];
            u32 before = 0;
            for (u32 slab = 0; slab < slabs; slab++) {
                wait(ring.full + ring.stage, ring.phase);
                u64 left = tile_descriptor(ring.left + ring.stage * ring.LEFT_BYTES);
                u64 right = tile_descriptor(ring.right + ring.stage * ring.RIGHT_BYTES);
                begin_slab();
#pragma unroll
                for (int step = 0; step < SLAB_BYTES / 32; step++) {
                    u32 add = step > 0 ? 1 : slab;
                    Type::multiply(upper, left + 2 * step, right + 2 * step, add);
                    Type::multiply(lower, left + 2 * step + LOWER_HALF, right + 2 * step, add);
                }
                end_slab();
                wait_until_multiplied<1>();
                if (slab > 0 && threadIdx.x % 128 == 0) arrive(ring.empty + before);
                before = ring.stage;
                ring.advance();
            }
            asm volatile("bar.arrive %0, 256;" ::"r"(other_turn) : "memory");
            wait_until_multiplied<0>();
            if (threadIdx.x % 128 == 0) arrive(ring.empty + before);
            auto room = [&](u32 slot) { return cut.room<typename Type::Sum>(slot, DOWN * ACROSS); };
            auto room_of_lower = [&](u32 slot) { return room(slot) + 64 * ACROSS / 4; };
            auto leave_all = [&](u32 slot) {
                leave<WARPGROUP>(room(slot), thread, upper);
                leave<WARPGROUP>(room_of_lower(slot), thread, lower);
            };
            auto add_all = [&](u32 slot) {
                add<WARPGROUP>(room(slot), thread, upper);
                add<WARPGROUP>(room_of_lower(slot), thread, lower);
            };
            if (!share<WARPGROUP>(pieces.piece, cut, thread, SHARING + warpgroup, leave_all, add_all)) continue;
            u32 y = pieces.y + thread / 32 * Strip<Type>::ROWS;
            Results<Type, ACROSS> results;
            results.take(out + y * extent.pitch + pieces.x, upper, extent.pitch, ACROSS);
            results.template write<true>(ring.results);
            results.take(out + (y + 64) * extent.pitch + pieces.x, lower, extent.pitch, ACROSS);
            results.template write<true>(ring.results);
        }
    }
}

// 64 bits: a warp multiplies what it has read into registers itself. A step takes 8 of k, two for each thread of a row.

__device__ double shared_number(u32 address) {
    double number;
    asm volatile("ld.shared.f64 %0, [%1];" : "=d"(number) : "r"(address));
    return number;
}
__device__ void multiply(double *sum, const double (&left)[4], const double (&right)[2]) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
                 : "d"(left[0]), "d"(left[1]), "d"(left[2]), "d"(left[3]), "d"(right[0]), "d"(right[1]));
}

/// What a warp of doubles multiplies: `HIGH` times 16 rows by `WIDE` times 8 columns.
template <int HIGH, int WIDE> struct Warp {
    double sum[HIGH * WIDE * 4], left[2][HIGH][4], right[WIDE][2];

    /// Reads the rows of A for a step. A thread may take any two elements of k that it takes on both sides: here those of
    /// one pack of 16 bytes, and its neighbor the second of them first, so that all lie in different banks. Each is read by
    /// itself, because the instruction wants another row's between the two.
    __device__ void read_left(u32 from, int step) {
#pragma unroll
        for (int i = 0; i < HIGH; i++)
#pragma unroll
            for (int part = 0; part < 4; part++)
                left[step][i][part] = shared_number((from ^ part / 2 * 8) + (16 * i + part % 2 * 8) * SLAB_BYTES);
    }
    __device__ void read_right(u32 from, int j) {
        right[j][0] = shared_number(from + 8 * j * SLAB_BYTES);
        right[j][1] = shared_number((from ^ 8) + 8 * j * SLAB_BYTES);
    }
    /// Multiplies a step, and reads each part of B for the next one as soon as that of this one has been used.
    template <bool IS_LAST> __device__ void multiply_step(int step, u32 next_right) {
#pragma unroll
        for (int j = 0; j < WIDE; j++) {
#pragma unroll
            for (int i = 0; i < HIGH; i++) multiply(sum + (i * WIDE + j) * 4, left[step][i], right[j]);
            if (!IS_LAST) read_right(next_right, j);
        }
    }
};

template <int DOWN, int ACROSS, int STAGES>
__device__ void product_of_doubles(double *out, const Map &a, const Map &b, Extent extent, const Cut &cut) {
    constexpr int SLAB = SLAB_BYTES / 8, HIGH = DOWN / 64, WIDE = ACROSS / 16;
    constexpr u32 MULTIPLYING = 256, SHARING = 1;
    extern __shared__ unsigned char raw[];
    Ring<DOWN, ACROSS, STAGES, 0> ring(raw, 8);
    Pieces<DOWN, ACROSS> pieces(extent, SLAB, cut);
    if (threadIdx.x >= 256) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 256) ring.fetch(a, b, pieces, extent.rows, SLAB);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        u32 top = warp / 2 * 16 * HIGH, first = warp % 2 * 8 * WIDE;
        // Where a thread reads in the first step. The second step's pack lies beside it.
        u32 place = lane / 4 * SLAB_BYTES + ((lane % 4 * 2 ^ lane / 4) << 4) + lane % 2 * 8;
        u32 left = shared_address(ring.left) + top * SLAB_BYTES + place;
        u32 right = shared_address(ring.right) + first * SLAB_BYTES + place;
        auto left_of = [&](u32 stage, u32 step) { return (left ^ step << 4) + stage * ring.LEFT_BYTES; };
        auto right_of = [&](u32 stage, u32 step) { return (right ^ step << 4) + stage * ring.RIGHT_BYTES; };
        // A stage is given back one slab after the last was read of it: by then that has been multiplied. A warp that
        // arrives behind its last read may do so before it has got what it reads.
        u32 done = 0, finished = 0;
        auto give_back = [&](u32 stage) {
            if (finished++ > 0 && lane == 0) arrive(ring.empty + done);
            done = stage;
        };
        while (pieces.next()) {
            u32 slabs = pieces.piece.end - pieces.piece.first;
            Warp<HIGH, WIDE> part;
#pragma unroll
            for (int i = 0; i < HIGH * WIDE * 4; i++) part.sum[i] = 0;
            wait(ring.full + ring.stage, ring.phase);
            part.read_left(left_of(ring.stage, 0), 0);
#pragma unroll
            for (int j = 0; j < WIDE; j++) part.read_right(right_of(ring.stage, 0), j);
            for (u32 slab = 1; slab < slabs; slab++) {
                u32 stage = ring.stage;
                part.read_left(left_of(stage, 1), 1);
                part.template multiply_step<false>(0, right_of(stage, 1));
                ring.advance();
                wait(ring.full + ring.stage, ring.phase);
                give_back(stage);
                part.read_left(left_of(ring.stage, 0), 0);
                part.template multiply_step<false>(1, right_of(ring.stage, 0));
            }
            part.read_left(left_of(ring.stage, 1), 1);
            part.template multiply_step<false>(0, right_of(ring.stage, 1));
            part.template multiply_step<true>(1, 0);
            give_back(ring.stage);
            ring.advance();
            auto room = [&](u32 slot) { return cut.room<double>(slot, DOWN * ACROSS); };
            auto leave_all = [&](u32 slot) { leave<MULTIPLYING>(room(slot), threadIdx.x, part.sum); };
            auto add_all = [&](u32 slot) { add<MULTIPLYING>(room(slot), threadIdx.x, part.sum); };
            if (!share<MULTIPLYING>(pieces.piece, cut, threadIdx.x, SHARING, leave_all, add_all)) continue;
            u64 pitch = extent.pitch;
            double *to = out + (pieces.y + top + lane / 4) * pitch + pieces.x + first + lane % 4 * 2;
#pragma unroll
            for (int i = 0; i < HIGH; i++)
#pragma unroll
                for (int j = 0; j < WIDE; j++) {
                    double *sum = part.sum + (i * WIDE + j) * 4;
                    *(Two<double> *)(to + 16 * i * pitch + 8 * j) = {sum[0], sum[1]};
                    *(Two<double> *)(to + (16 * i + 8) * pitch + 8 * j) = {sum[2], sum[3]};
                }
        }
    }
}

#define KERNEL(name, Out, call)                                                                                       \
    __global__ void __launch_bounds__(THREADS, 1)                                                                     \
        name(Out *out, const __grid_constant__ Map a, const __grid_constant__ Map b, u64 rows, u64 columns, u64 depth,\
             u64 pitch, unsigned char *parts, u64 whole, u64 parts_of_each) {                                         \
        call(out, a, b, {rows, columns, depth, pitch}, {parts, (u32)whole, (u32)parts_of_each});                      \
    }
#define TENSOR(name, Type)                                                                                            \
    KERNEL(name##_128x256, Type::Out, (product_together<Type, 256, 4>))                                               \
    KERNEL(name##_128x192, Type::Out, (product_together<Type, 192, 4>))                                               \
    KERNEL(name##_128x128, Type::Out, (product_in_turns<Type, 6>))                                                    \
    KERNEL(name##_128x64, Type::Out, (product_together<Type, 64, 8>))

extern "C" {
TENSOR(matmul_bf16, Bf16)
TENSOR(matmul_fp16, Fp16)
TENSOR(matmul_tf32, Tf32)
TENSOR(matmul_fp8, Fp8)
TENSOR(matmul_int8, Int8)
KERNEL(matmul_fp64_128x128, double, (product_of_doubles<128, 128, 6>))
KERNEL(matmul_fp64_128x64, double, (product_of_doubles<128, 64, 8>))
KERNEL(matmul_fp64_64x128, double, (product_of_doubles<64, 128, 8>))
KERNEL(matmul_fp64_64x64, double, (product_of_doubles<64, 64, 12>))
}
