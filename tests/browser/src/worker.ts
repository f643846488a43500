/**
 * A script that replaces the program for runs. It reports the steps and results that a test needs.
 */

import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { newFolder } from './machine';

/**
 * A script that reports a run on the job's GPU: a step with a result, and then a step that lasts
 * until a file exists or the run is canceled.
 */
const SCRIPT = `#!/bin/sh
for job; do :; done
uuid=$(printf %s "$job" | sed -n 's/.*"device":"\\([^"]*\\)".*/\\1/p')
say() { printf '{"at_ms":1,"report":%s}\\n' "$1"; }
trap 'say "\\"ended\\",\\"code\\":130"; exit 130' INT
say '"begun","title":"triad","devices":[{"name":"NVIDIA H200","uuid":"'$uuid'"}],"steps":2'
say '"phase","step":0,"id":"triad","backend":"cuda","phase":"measuring"'
spread() { printf '{"median_us":%s,"low_us":%s,"high_us":%s,"p5_us":%s,"p95_us":%s,"min_us":%s,"n":10}' $1 $1 $1 $1 $1 $1; }
say '"result","id":"triad","backend":"cuda","device":{"name":"NVIDIA H200"},"dtype":"fp32","n":4,"extent":"elements","memory_bytes":48,"host_bytes":0,"moved_bytes":48,"operations":8,"device_time":'$(spread 534.2)',"host_time":'$(spread 541.0)',"stopped":"steady","partial":false,"rate":{"bytes_per_second":4.02e12},"roofline":{"limit":"memory","rated_per_second":4.8e12,"share":0.84},"verify":{"ok":true,"checked":4,"wrong":0,"largest_error":0,"tolerance":1},"environment":{"from_ms":1,"to_ms":2,"gpumon":"0.2.0","cpu":"CPU","threads":2},"load":null'
say '"phase","step":1,"id":"triad","backend":"cpu","phase":"verifying"'
say '"progress","share":0.5,"text":"half of it"'
while [ ! -e "$0.go" ]; do sleep 0.05; done
say '"ended","code":0'
`;

export class Worker {
  private readonly script = path.join(newFolder(), 'worker');

  constructor() {
    writeFileSync(this.script, SCRIPT);
    chmodSync(this.script, 0o755);
  }

  /** The environment variables that make a server use the script. */
  get environment(): Record<string, string> {
    return { GPUMON_WORKER: this.script };
  }

  /** Lets runs finish. */
  finishRuns(): void {
    writeFileSync(`${this.script}.go`, '');
  }

  /** Makes runs wait again. */
  blockRuns(): void {
    rmSync(`${this.script}.go`, { force: true });
  }
}
