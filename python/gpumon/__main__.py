"""``python -m gpumon``: runs the ``gpumon`` program that is installed with this package."""

import os
import sys

from gpumon._find import GpumonNotFound, find_gpumon_bin


def main() -> None:
    """Replace this process with the ``gpumon`` program, which gets the same arguments. It receives
    signals directly, and its exit code is the exit code of this process.
    """
    try:
        program = find_gpumon_bin()
    except GpumonNotFound as error:
        sys.exit(f"gpumon: {error}")
    os.execv(program, ["gpumon", *sys.argv[1:]])


if __name__ == "__main__":
    main()
