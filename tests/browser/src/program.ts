/** A program that runs during a test. */

import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';

import { TIMEOUT_MS } from './patience';

export class Program {
  /** The output so far, from both stdout and stderr. */
  output = '';
  private readonly child: ChildProcess;
  private readonly name: string;

  constructor(command: string, args: readonly string[], env: Record<string, string>) {
    this.name = [command, ...args].join(' ');
    this.child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text;
      });
    }
    this.child.on('error', (error) => {
      this.output += `\n${error.message}`;
    });
  }

  get pid(): number {
    if (this.child.pid === undefined) {
      throw new Error(`${this.name} did not start: ${this.output}`);
    }
    return this.child.pid;
  }

  get hasEnded(): boolean {
    return (
      this.child.exitCode !== null || this.child.signalCode !== null || this.child.pid === undefined
    );
  }

  /**
   * Waits until `ready` returns a value other than `null`, and returns it. Throws an error with the
   * program's output if the program ends or the time limit is reached.
   */
  async waitFor<T>(what: string, ready: () => T | null | Promise<T | null>): Promise<T> {
    const giveUp_ms = Date.now() + TIMEOUT_MS;
    while (!this.hasEnded && Date.now() < giveUp_ms) {
      const result = await ready();
      if (result !== null) {
        return result;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(
      `${this.name}: ${this.hasEnded ? 'ended before' : 'no'} ${what}\n${this.output}`,
    );
  }

  /**
   * Sends a signal to the program and waits for its end. Returns the exit code, or `null` if the
   * signal ended the program.
   */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    if (!this.hasEnded) {
      const ended = once(this.child, 'exit');
      this.child.kill(signal);
      const killer = setTimeout(() => {
        this.output += '\n(it did not end by itself)';
        this.child.kill('SIGKILL');
      }, TIMEOUT_MS);
      await ended;
      clearTimeout(killer);
    }
    return this.child.exitCode;
  }
}
