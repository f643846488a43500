// Sums that several blocks share. Where there are fewer tiles than multiprocessors, or in the last round are, the sums of
// these tiles are cut into equal parts, which are pieces of work as whole tiles are. The block with the last part adds
// what the others have left in memory, in their order, so that a product is the same to the bit each time.
//
// A piece waits for pieces before it alone, and blocks begin them in order: so none waits for one that cannot begin.

typedef unsigned long long u64;
typedef unsigned u32;

template <typename T> struct alignas(16) Four { T lane[4]; };

/// The pieces of a product: this many whole tiles, and behind them the parts of the others, so many of each. Parts are
/// left behind the flags that say so, which are 0 before and after.
struct Cut {
    static constexpr u32 FLAGS_BYTES = 16 << 10;
    unsigned char *memory;
    u32 whole, parts;

    __device__ u32 pieces(u32 tiles) const { return whole + (tiles - whole) * parts; }
    __device__ u32 *flag(u32 slot) const { return (u32 *)memory + slot; }
    template <typename Sum> __device__ Four<Sum> *room(u32 slot, u32 of_tile) const {
        return (Four<Sum> *)(memory + FLAGS_BYTES + (u64)slot * of_tile * sizeof(Sum));
    }
};

/// What a block does at a time: slabs of a tile's sum, from `first` to `end`.
struct Piece {
    u32 tile, slot, part, first, end;

    __device__ Piece(u32 at, const Cut &cut, u32 slabs) : tile(at), slot(0), part(0), first(0), end(slabs) {
        if (at < cut.whole) return;
        slot = at - cut.whole;
        tile = cut.whole + slot / cut.parts;
        part = slot % cut.parts;
        first = part * slabs / cut.parts;
        end = (part + 1) * slabs / cut.parts;
    }
};

/// Waits until all threads of a group have come.
template <u32 GROUP> __device__ void meet(u32 barrier) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(GROUP) : "memory");
}

/// Leaves a thread's sums, or adds to them what was left.
template <u32 GROUP, typename Sum, int COUNT> __device__ void leave(Four<Sum> *room, u32 thread, const Sum (&sum)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; i += 4)
        room[i / 4 * GROUP + thread] = {sum[i], sum[i + 1], sum[i + 2], sum[i + 3]};
}
template <u32 GROUP, typename Sum, int COUNT> __device__ void add(const Four<Sum> *room, u32 thread, Sum (&sum)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; i += 4) {
        Four<Sum> part = room[i / 4 * GROUP + thread];
#pragma unroll
        for (int j = 0; j < 4; j++) sum[i + j] += part.lane[j];
    }
}

/// What a group of threads does when it has multiplied a piece, before it writes results: of a part, `leave` or `add` for
/// the place of each; whether it has results.
template <u32 GROUP, typename Leave, typename Add>
__device__ bool share(const Piece &piece, const Cut &cut, u32 thread, u32 barrier, Leave leave, Add add) {
    if (piece.tile < cut.whole || cut.parts == 1) return true;
    if (piece.part + 1 < cut.parts) {
        leave(piece.slot);
        meet<GROUP>(barrier);
        if (thread == 0) asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(cut.flag(piece.slot)) : "memory");
        return false;
    }
    for (u32 slot = piece.slot - piece.part; slot < piece.slot; slot++) {
        u32 is_there = thread != 0;
        while (!is_there)
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(is_there) : "l"(cut.flag(slot)) : "memory");
        meet<GROUP>(barrier);
        add(slot);
        if (thread == 0) *cut.flag(slot) = 0;
    }
    return true;
}
