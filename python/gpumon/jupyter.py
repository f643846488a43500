"""Introduces gpumon to jupyter-server-proxy, which starts it on demand and lets only the Jupyter
server's users in.

Every Jupyter server imports this when it starts, whether anybody opens the panel or not: keep it
light.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import subprocess
import sys
from typing import Any
from urllib.parse import quote

from gpumon._find import NAME, GpumonNotFound, find_gpumon_bin, find_other_version, is_script

#: gpumon answers within milliseconds; a machine that is busy starting kernels may take longer to
#: start a process.
START_TIMEOUT_S = 30

#: What is asked here takes milliseconds; a Jupyter server that starts must not wait for what does
#: not answer.
PATIENCE_S = 2

#: Bytes; a rule takes some hundred.
LONGEST_ANSWER = 1 << 20


def setup_gpumon() -> dict[str, Any]:
    """Return the server process for the route ``/gpumon/``, in the terms of jupyter-server-proxy."""
    other, refusal = find_other_version(), None
    try:
        program = find_gpumon_bin()
    except GpumonNotFound as error:
        # An error here would take the routes of other packages down too; left to PATH, it concerns
        # this route alone.
        program = NAME
        # In PATH may be the other package's program, which does not know what it is asked.
        refusal = str(error) if other is not None or _is_script_in_path() else None
    marks = [] if refusal is not None else _marks(program)
    if other is not None:
        marks.append(f"other={quote(other)}")
    path = f"{NAME}/?{'&'.join(marks)}" if marks else f"{NAME}/"
    program = _literal(program)

    def command(unix_socket: str) -> list[str]:
        # The proxy makes a folder for the socket in /tmp and leaves it behind.
        atexit.register(_remove, unix_socket)
        if refusal is not None:
            return [
                _literal(sys.executable),
                "-c",
                "import sys; sys.exit(sys.argv[1])",
                _literal(f"gpumon: {refusal}"),
            ]
        served = ["--socket", "{unix_socket}", "--exit-with-parent"]
        recording = os.environ.get("GPUMON_REPLAY", "")
        if recording:
            return [program, "replay", _literal(recording), "--serve", *served]
        return [program, "serve", *served, *_history()]

    return {
        "command": command,
        # A socket in a folder that only this user may enter; a port would be open to everybody on
        # the machine.
        "unix_socket": True,
        "timeout": START_TIMEOUT_S,
        # The page finds its way under any prefix, so the proxy may cut it off.
        "absolute_url": False,
        "new_browser_tab": True,
        # A panel that is left open must not keep an idle server from being culled.
        "update_last_activity": False,
        # The panel and the palette already lead here. The query informs the panel before a server
        # starts: whether to connect by itself (`alerts`), whether the launcher offers the fleet
        # (`fleet`), and the version of the other program's package gpumon (`other`).
        "launcher_entry": {"enabled": False, "title": "gpumon", "path_info": path},
    }


def _is_script_in_path() -> bool:
    """Return whether the command `gpumon` is a script, which the program of this package is not."""
    import shutil

    path = shutil.which(NAME)
    return path is not None and is_script(path)


def _marks(program: str) -> list[str]:
    """Return marks for a server with alerts, its own or of the server that it joins, and with a
    fleet.
    """
    if os.environ.get("GPUMON_REPLAY"):
        return []
    settings = _settings(program)
    joined = None if settings.get("no-join") else settings.get("join")
    has_alerts = (
        os.environ.get("GPUMON_ALERTS") or settings.get("alerts") or (joined and _has_rules(joined))
    )
    has_fleet = any(
        settings.get(key) for key in ("fleet-prometheus", "fleet-hosts", "fleet-hosts-file")
    )
    return [mark for mark, is_set in (("alerts", has_alerts), ("fleet", has_fleet)) if is_set]


def _settings(program: str) -> dict[str, Any]:
    """Return what variables and settings files tell the server; nothing where that cannot be found
    out.
    """
    command = [program, "config", "show", "--json", "serve"]
    with contextlib.suppress(
        OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError
    ):
        shown = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, check=True
        )
        return {
            setting["key"]: setting["value"] for setting in json.loads(shown.stdout)["settings"]
        }
    return {}


def _has_rules(shared_socket: str) -> bool:
    """Return whether the server of the system that listens there has alert rules."""
    with (
        contextlib.suppress(OSError, ValueError, LookupError, TypeError),
        socket.socket(socket.AF_UNIX) as server,
    ):
        server.settimeout(PATIENCE_S)
        server.connect(shared_socket)
        server.sendall(b"GET /api/v1/alerts HTTP/1.0\r\nHost: localhost\r\n\r\n")
        with server.makefile("rb") as answer:
            body = answer.read(LONGEST_ANSWER).partition(b"\r\n\r\n")[2]
        return bool(json.loads(body)["rules"])
    return False


def _literal(text: str) -> str:
    """Return a text that the proxy, which puts the socket's path in with str.format, leaves as it
    is.
    """
    return text.replace("{", "{{").replace("}", "}}")


def _history() -> list[str]:
    """Return the options that keep history in the user's state folder, unless a variable or a
    settings file names another.
    """
    # A relative path is to be ignored, the XDG base directory specification says.
    state = os.environ.get("XDG_STATE_HOME", "")
    home = os.path.expanduser("~")
    if not os.path.isabs(state):
        if not os.path.isabs(home):
            return []
        state = os.path.join(home, ".local", "state")
    folder = os.path.join(state, "gpumon")
    return ["--default-data-dir", _literal(folder)]


def _remove(path: str) -> None:
    """Remove a socket and its folder, unless something else is in it."""
    with contextlib.suppress(OSError):
        os.unlink(path)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(path))
