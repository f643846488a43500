/**
 * A fake Prometheus that responds to the queries about nodes. Each node has two GPUs: one is busy,
 * the other is free.
 */

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

const GPUS = [0, 1];
/** The values of the two GPUs of each node, by metric name. */
const VALUES: Partial<Record<string, readonly [number, number]>> = {
  gpumon_gpu_up: [1, 1],
  gpumon_gpu_utilization_ratio: [0.875, 0],
  gpumon_gpu_memory_used_bytes: [64e9, 4e8],
  gpumon_gpu_memory_total_bytes: [85_520_809_984, 85_520_809_984],
  gpumon_gpu_power_watts: [650, 70],
  gpumon_gpu_power_limit_watts: [700, 700],
  gpumon_gpu_temperature_celsius: [64, 31],
  gpumon_gpu_processes: [1, 0],
};

interface Series {
  metric: Record<string, string>;
  value: [at_s: number, value: string];
}

export class FakePrometheus {
  /** Whether the server answers queries. */
  works = true;

  private constructor(
    private readonly server: Server,
    private readonly instances: readonly string[],
    private readonly user: string,
  ) {}

  /**
   * Starts a fake Prometheus with these scraped instances. On each instance, `user` uses one GPU.
   */
  static async start(instances: readonly string[], user = 'ana'): Promise<FakePrometheus> {
    const server = createServer((request, response) => {
      let body = '';
      request.on('data', (part: Buffer) => (body += part.toString()));
      request.on('end', () => {
        const url = new URL(request.url ?? '/', 'http://prometheus');
        const query = url.searchParams.get('query') ?? new URLSearchParams(body).get('query') ?? '';
        if (!fake.works) {
          request.socket.destroy();
          return;
        }
        const range = url.pathname.endsWith('query_range');
        const data = {
          resultType: range ? 'matrix' : 'vector',
          result: range ? [] : fake.evaluateQuery(query),
        };
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ status: 'success', data }));
      });
    });
    const fake = new FakePrometheus(server, instances, user);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private evaluateQuery(query: string): Series[] {
    if (query.startsWith('count by (__name__)')) {
      return Object.keys(VALUES).map((name) =>
        makeSeries({ __name__: name }, this.instances.length * GPUS.length),
      );
    }
    if (query === 'up' || query.startsWith('up{')) {
      return this.instances.map((instance) =>
        makeSeries({ __name__: 'up', instance, job: 'gpumon' }, 1),
      );
    }
    if (query.includes('gpumon_gpu_info')) {
      return this.ofGpus('gpumon_gpu_info', [1, 1], { name: 'NVIDIA H100 80GB HBM3' });
    }
    if (query.includes('gpumon_gpu_job_info')) {
      const labels = { user: this.user, slurm_job: '88123' };
      return this.ofGpus('gpumon_gpu_job_info', [1, 1], labels).filter(
        ({ metric }) => metric.gpu === '0',
      );
    }
    const values = VALUES[query];
    return values === undefined ? [] : this.ofGpus(query, values);
  }

  private ofGpus(
    name: string,
    values: readonly number[],
    more: Record<string, string> = {},
  ): Series[] {
    return this.instances.flatMap((instance) =>
      GPUS.map((gpu) => {
        const uuid = `GPU-${instance}-${gpu}`;
        return makeSeries(
          { __name__: name, instance, job: 'gpumon', gpu: String(gpu), uuid, ...more },
          values[gpu] ?? 0,
        );
      }),
    );
  }
}

function makeSeries(metric: Record<string, string>, value: number): Series {
  return { metric, value: [Date.now() / 1000, String(value)] };
}
