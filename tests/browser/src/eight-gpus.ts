/** Eight GPUs of the fake NVML library, two of which fail while they are looked at. */

export const LOST = 3;
export const HUNG = 5;
/** After the collector's start: a busy machine has shown all eight before. */
const FAILS_AFTER_S = 20;

/** The scenario with these GPUs; `pid` is a process that really exists and holds the first. */
export function eightGpus(pid: number): string {
  const gpus = Array.from(
    { length: 8 },
    (_, index) => `[[gpu]]\nindex = ${index}\nprofile = "training"\n`,
  );
  const fault = (gpu: number, kind: string): string =>
    `[[fault]]\ngpu = ${gpu}\nkind = "${kind}"\nfrom_s = ${FAILS_AFTER_S}\n`;
  const process = `[[process]]\ngpu = 0\npid = ${pid}\nmemory = "12 GiB"\nsm_percent = [[0, 10], [100, 90]]\n`;
  return [...gpus, process, fault(LOST, 'lost'), fault(HUNG, 'hang')].join('\n');
}
