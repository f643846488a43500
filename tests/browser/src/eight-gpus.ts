/** A scenario with eight GPUs of the fake NVML library. Two of the GPUs fail during the test. */

export const LOST_GPU = 3;
export const HUNG_GPU = 5;
/**
 * The time from the collector's start until GPUs fail. Even a busy machine can show all GPUs within
 * this time.
 */
const FAILS_AFTER_S = 20;

/**
 * Returns the scenario with eight GPUs. `pid` is the PID of an existing process, which uses the
 * first GPU.
 */
export function makeEightGpuScenario(pid: number): string {
  const gpus = Array.from(
    { length: 8 },
    (_, index) => `[[gpu]]\nindex = ${index}\nprofile = "training"\n`,
  );
  const fault = (gpu: number, kind: string): string =>
    `[[fault]]\ngpu = ${gpu}\nkind = "${kind}"\nfrom_s = ${FAILS_AFTER_S}\n`;
  const process = `[[process]]\ngpu = 0\npid = ${pid}\nmemory = "12 GiB"\nsm_percent = [[0, 10], [100, 90]]\n`;
  return [...gpus, process, fault(LOST_GPU, 'lost'), fault(HUNG_GPU, 'hang')].join('\n');
}
