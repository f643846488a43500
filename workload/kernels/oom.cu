// What shows that not all that looks like too little memory is that: a kernel that makes the stream wait, and one that
// needs so many registers that no block of 1024 threads has them.

typedef unsigned long long u64;

extern "C" {
// By the clock that all of the device shares. It ends in any case, since that clock never stands still.
__global__ void oom_wait(u64 ns) {
    u64 begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - begin < ns);
}

// Every number depends on all others of the round before, so that each of them keeps a register of its own: more than
// the 64 that a block of 1024 threads has for each.
__global__ void oom_registers(float *out, u64 rounds) {
    float numbers[96];
#pragma unroll
    for (int i = 0; i < 96; i++) numbers[i] = (float)(threadIdx.x + i);
#pragma unroll 1
    for (u64 round = 0; round < rounds; round++) {
#pragma unroll
        for (int i = 0; i < 96; i++) numbers[i] = numbers[i] * numbers[(i + 41) % 96] + numbers[(i + 67) % 96];
    }
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 96; i++) sum += numbers[i];
    out[blockIdx.x] = sum;
}
}
