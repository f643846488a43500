// A load that is known to the multiprocessor: every block is busy for the same time and does nothing else.

typedef unsigned long long u64;

extern "C" {
// By the clock that all of the device shares. Each block says how many cycles and how many ns went by, and on which
// multiprocessor.
__global__ void spin(u64 *out, u64 ns) {
    u64 begin, now, first, last;
    unsigned int where;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(first));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - begin < ns);
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(last));
    asm volatile("mov.u32 %0, %%smid;" : "=r"(where));
    if (threadIdx.x == 0) {
        out[3 * blockIdx.x] = last - first;
        out[3 * blockIdx.x + 1] = now - begin;
        out[3 * blockIdx.x + 2] = where;
    }
}
}
