#!/usr/bin/env python3
"""Starts JupyterLab with the GPU panel open, and prints the addresses of panel and page.

    tools/lab.py VENV [FOLDER]

JupyterLab writes all of its files to FOLDER (target/lab). Your own settings and the checkout do not
change.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import FrameType

FOLDER = Path(__file__).resolve().parents[1] / "target" / "lab"
LOG = "jupyter.log"
FIRST_PORT = 8888
START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 10
#: gpumon's exit codes for no GPU, no driver and no library.
NOTHING_TO_READ = {6, 9, 12}

#: JupyterLab's layout, with the panel on the left.
LAYOUT = {
    "main": {"dock": {"type": "tab-area", "currentIndex": 0, "widgets": []}},
    "left": {
        "collapsed": False,
        "visible": True,
        "current": "gpumon-panel",
        "widgets": ["filebrowser", "running-sessions", "gpumon-panel"],
    },
    "relativeSizes": [0.3, 0.7, 0],
}
#: Without these settings, JupyterLab asks whether it may fetch news.
NOTIFICATION_SETTINGS = {"fetchNews": "false", "checkForUpdates": False}


def main(venv: Path, folder: Path) -> int:
    environment = {
        **os.environ,
        **_make_environment(folder),
        "JUPYTER_TOKEN": secrets.token_hex(24),
    }
    _choose_source(venv, environment)
    _prepare_folder(venv, folder, environment)
    process = _start_server(venv, folder, environment)
    # JupyterLab is shut down cleanly on Ctrl-C, and when make or the terminal ends.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        url = _wait_until_reachable(process, folder, environment["JUPYTER_TOKEN"])
        _print_addresses(url, environment["JUPYTER_TOKEN"], venv, environment.get("GPUMON_SOURCE"))
        code = process.wait()
        print(f"JupyterLab exited with code {code}; its messages are in {folder / LOG}")
        return 1
    except KeyboardInterrupt:
        print("\nstopping JupyterLab", flush=True)
        return 0
    finally:
        _stop_server(process)


def _make_environment(folder: Path) -> dict[str, str]:
    names = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    }
    return {variable: str(folder / name) for variable, name in names.items()}


def _choose_source(venv: Path, environment: dict[str, str]) -> None:
    """Use the source that the user has set. Otherwise, use real GPUs if there are any, or simulated
    ones.
    """
    if "GPUMON_SOURCE" in environment:
        print(
            f"GPUMON_SOURCE is set: the values are read from {environment['GPUMON_SOURCE']}",
            flush=True,
        )
        return
    asked = subprocess.run(
        [venv / "bin" / "gpumon", "--json"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode in NOTHING_TO_READ:
        environment["GPUMON_SOURCE"] = "sim"
        print(asked.stderr.strip())
        print("There are no GPUs to read, so the values are SIMULATED.", flush=True)
    elif asked.returncode == 0:
        count = len(json.loads(asked.stdout)["inventory"]["gpus"])
        print(
            f"The values are real: this machine has {count} GPU{'' if count == 1 else 's'}.",
            flush=True,
        )
    else:
        print(asked.stderr.strip())
        print(
            "The panel will show the same error. For simulated values, run "
            "`GPUMON_SOURCE=sim make`.",
            flush=True,
        )


def _prepare_folder(venv: Path, folder: Path, environment: dict[str, str]) -> None:
    settings = folder / "settings" / "@jupyterlab" / "apputils-extension"
    for needed in (settings, folder / "notebooks"):
        needed.mkdir(parents=True, exist_ok=True)
    (settings / "notification.jupyterlab-settings").write_text(
        json.dumps(NOTIFICATION_SETTINGS), encoding="utf-8"
    )
    workspace = folder / "panel-open.jupyterlab-workspace"
    data = {"data": {"layout-restorer:data": LAYOUT}, "metadata": {"id": "default"}}
    workspace.write_text(json.dumps(data), encoding="utf-8")
    command = [venv / "bin" / "jupyter", "lab", "workspaces", "import", workspace]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{done.stderr.strip()}\nJupyterLab could not import the layout {workspace}")


def _start_server(venv: Path, folder: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    command = [
        *(
            venv / "bin" / "jupyter",
            "lab",
            "--no-browser",
            "--ip=127.0.0.1",
            f"--port={FIRST_PORT}",
        ),
        f"--ServerApp.root_dir={folder / 'notebooks'}",
        # In a container, all users are root. The server can only be reached from this machine and
        # with the token.
        "--allow-root",
    ]
    with (folder / LOG).open("wb") as log:
        # In its own session, JupyterLab does not receive Ctrl-C from the terminal and so does not
        # ask for confirmation.
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _wait_until_reachable(process: subprocess.Popen[bytes], folder: Path, token: str) -> str:
    """Return the address of the server as soon as gpumon answers. The server writes its port into a
    file.
    """
    server = folder / "runtime" / f"jpserver-{process.pid}.json"
    give_up = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < give_up and process.poll() is None:
        try:
            url: str = json.loads(server.read_text(encoding="utf-8"))["url"]
            request = urllib.request.Request(
                f"{url}gpumon/healthz", headers={"Authorization": f"token {token}"}
            )
            urllib.request.urlopen(request, timeout=60).close()
            return url
        except (OSError, ValueError):
            # The file does not exist yet or is incomplete.
            time.sleep(0.2)
    tail = "\n".join(
        (folder / LOG).read_text(encoding="utf-8", errors="replace").splitlines()[-40:]
    )
    sys.exit(
        f"{tail}\nJupyterLab or its gpumon server does not answer; all messages are in "
        f"{folder / LOG}"
    )


def _print_addresses(url: str, token: str, venv: Path, source: str | None) -> None:
    # The option is needed if JupyterLab's gpumon does not read the GPUs of this machine.
    option = "" if source is None else f" --source {source}"
    local = url.replace("localhost", "127.0.0.1")
    print(
        f"\n  JupyterLab with the panel   {local}lab?token={token}"
        f"\n  The page alone              {local}gpumon/?token={token}"
        f"\n  In a terminal               {os.path.relpath(venv / 'bin' / 'gpumon')}{option}"
        "\n\nPress Ctrl-C to stop JupyterLab.",
        flush=True,
    )


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _stop_server(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: tools/lab.py VENV [FOLDER]")
    sys.exit(
        main(
            Path(sys.argv[1]).absolute(),
            Path(sys.argv[2] if len(sys.argv) == 3 else FOLDER).absolute(),
        )
    )
