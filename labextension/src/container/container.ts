/**
 * What JupyterLab asks for this extension: a container, as Module Federation calls it. It is told which packages a page
 * shares, and gives the plugin.
 *
 * The container that a bundler would put here is larger than all else that is loaded at JupyterLab's start, for it can
 * share packages of its own and nest other containers. This extension takes packages, and nothing more.
 */

/** One version of a shared package. */
interface Shared {
  /** Loads it; the factory gives the same module to all who call it. */
  get(): Promise<() => object>;
  /** Set where somebody has it already. */
  loaded?: unknown;
}

/** Shared packages by name and version, as JupyterLab and all extensions have brought them. */
export type ShareScope = Record<string, Record<string, Shared>>;

export interface Container {
  /** Comes first, and may come again. */
  init(scope: ShareScope): void;
  /** Gives the factory of a module; there is one, `./extension`. */
  get(name: string): Promise<() => object>;
  /** The shared packages; the chunks of this extension read them, and are loaded when all are there. */
  packages: Record<string, object>;
}

/** `needed` are the packages, each with the versions that will do, as `^4.0.0`. */
export function makeContainer(
  needed: Record<string, string>,
  loadPlugin: () => Promise<{ default: unknown }>,
): Container {
  let shared: ShareScope = {};
  const packages: Record<string, object> = {};
  const take = async ([name, range]: [string, string]): Promise<void> => {
    packages[name] = (await find(shared[name] ?? {}, name, range).get())();
  };
  return {
    packages,
    init(scope) {
      shared = scope;
    },
    async get(name) {
      if (name !== './extension') {
        throw new Error(`gpumon has no module ${name}`);
      }
      await Promise.all(Object.entries(needed).map(take));
      const { default: plugin } = await loadPlugin();
      // JupyterLab writes into what it gets, which the namespace of a module would not allow.
      return () => ({ __esModule: true, default: plugin });
    },
  };
}

/**
 * The version that JupyterLab takes for itself, which is the one in use or the newest: the tokens of any other would not
 * be those of its plugins.
 */
function find(versions: Record<string, Shared>, name: string, range: string): Shared {
  const [taken] = Object.entries(versions).sort(
    ([a, { loaded: isUsed }], [b, { loaded: isOtherUsed }]) =>
      Number(Boolean(isOtherUsed)) - Number(Boolean(isUsed)) || compare(b, a),
  );
  if (taken === undefined || parseInt(taken[0]) !== parseInt(range.slice(1))) {
    throw new Error(`gpumon needs ${name} ${range}, but this JupyterLab has ${taken?.[0] ?? 'none'}`);
  }
  return taken[1];
}

/** A tilde sorts behind a hyphen, so that `4.0.0-rc.1` comes before `4.0.0`. */
function compare(a: string, b: string): number {
  return `${a}~`.localeCompare(`${b}~`, 'en', { numeric: true });
}
