"""The configuration for jupyter-server-proxy, which starts gpumon on demand and gives access only
to the users of the Jupyter server.

Every Jupyter server imports this module at startup, so its imports are few.
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

from gpumon._find import (
    NAME,
    GpumonNotFound,
    find_gpumon_bin,
    find_other_package_version,
    is_script,
)

#: Maximum time until gpumon answers, in seconds. It usually takes milliseconds, but a machine that
#: is busy starting kernels may take longer to start a process.
START_TIMEOUT_S = 30

#: Maximum time for a query of the settings, in seconds. It usually takes milliseconds, and must not
#: delay the start of a Jupyter server.
PATIENCE_S = 2

#: Maximum size of a server's answer, in bytes. One alert rule takes a few hundred bytes.
MAX_ANSWER_BYTES = 1 << 20


def setup_gpumon() -> dict[str, Any]:
    """Return the configuration of the server process behind the route ``/gpumon/``, in the format
    of jupyter-server-proxy.
    """
    other, refusal = find_other_package_version(), None
    try:
        program = find_gpumon_bin()
    except GpumonNotFound as error:
        # An exception here would also disable the routes of other packages. The program from PATH
        # is used instead, so that at most gpumon's own route fails.
        program = NAME
        # The program in PATH may belong to the other package called gpumon, which does not know
        # these arguments.
        refusal = str(error) if other is not None or _is_script_in_path() else None
    marks = [] if refusal is not None else _read_server_flags(program)
    if other is not None:
        marks.append(f"other={quote(other)}")
    path = f"{NAME}/?{'&'.join(marks)}" if marks else f"{NAME}/"
    program = _escape_braces(program)

    def make_command(unix_socket: str) -> list[str]:
        # The proxy creates a folder for the socket in /tmp and does not remove it.
        atexit.register(_remove_socket, unix_socket)
        if refusal is not None:
            return [
                _escape_braces(sys.executable),
                "-c",
                "import sys; sys.exit(sys.argv[1])",
                _escape_braces(f"gpumon: {refusal}"),
            ]
        served = ["--socket", "{unix_socket}", "--exit-with-parent"]
        recording = os.environ.get("GPUMON_REPLAY", "")
        if recording:
            return [program, "replay", _escape_braces(recording), "--serve", *served]
        return [program, "serve", *served, *_history_options()]

    return {
        "command": make_command,
        # The socket is in a folder that only this user may enter. A port would be open to all users
        # of the machine.
        "unix_socket": True,
        "timeout": START_TIMEOUT_S,
        # The page works under any URL prefix, so the proxy may remove the prefix from requests.
        "absolute_url": False,
        "new_browser_tab": True,
        # An open panel does not count as activity, so that a server that is otherwise idle is still
        # shut down automatically.
        "update_last_activity": False,
        # No launcher entry is added, because the panel and the command palette already open the
        # page. Before a server starts, the panel reads three values from the query of `path`:
        # whether to connect automatically (`alerts`), whether the launcher offers the fleet
        # (`fleet`), and the version of the other package called gpumon (`other`).
        "launcher_entry": {"enabled": False, "title": "gpumon", "path_info": path},
    }


def _is_script_in_path() -> bool:
    """Return whether the command `gpumon` in PATH is a script. If it is, it belongs to another
    package, because the program of this package is not a script.
    """
    import shutil

    path = shutil.which(NAME)
    return path is not None and is_script(path)


def _read_server_flags(program: str) -> list[str]:
    """Return the flags for the query string of the page's address: `alerts` if the server, or the
    server that it joins, has alerts, and `fleet` if the server has a fleet.
    """
    if os.environ.get("GPUMON_REPLAY"):
        return []
    settings = _read_settings(program)
    joined = None if settings.get("no-join") else settings.get("join")
    has_alerts = (
        os.environ.get("GPUMON_ALERTS")
        or settings.get("alerts")
        or (joined and _has_alert_rules(joined))
    )
    has_fleet = any(
        settings.get(key) for key in ("fleet-prometheus", "fleet-hosts", "fleet-hosts-file")
    )
    return [mark for mark, is_set in (("alerts", has_alerts), ("fleet", has_fleet)) if is_set]


def _read_settings(program: str) -> dict[str, Any]:
    """Return the server's settings from environment variables and settings files. The result is
    empty if they cannot be read.
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


def _has_alert_rules(shared_socket: str) -> bool:
    """Return whether the machine's shared server, which listens at this socket, has alert rules."""
    with (
        contextlib.suppress(OSError, ValueError, LookupError, TypeError),
        socket.socket(socket.AF_UNIX) as server,
    ):
        server.settimeout(PATIENCE_S)
        server.connect(shared_socket)
        server.sendall(b"GET /api/v1/alerts HTTP/1.0\r\nHost: localhost\r\n\r\n")
        with server.makefile("rb") as answer:
            body = answer.read(MAX_ANSWER_BYTES).partition(b"\r\n\r\n")[2]
        return bool(json.loads(body)["rules"])
    return False


def _escape_braces(text: str) -> str:
    """Escape braces, because the proxy inserts the socket's path with str.format."""
    return text.replace("{", "{{").replace("}", "}}")


def _history_options() -> list[str]:
    """Return options that set the user's state folder as the default folder for history. A variable
    or a settings file can name another folder.
    """
    # The XDG base directory specification requires that relative paths are ignored.
    state = os.environ.get("XDG_STATE_HOME", "")
    home = os.path.expanduser("~")
    if not os.path.isabs(state):
        if not os.path.isabs(home):
            return []
        state = os.path.join(home, ".local", "state")
    folder = os.path.join(state, "gpumon")
    return ["--default-data-dir", _escape_braces(folder)]


def _remove_socket(path: str) -> None:
    """Remove a socket, and its folder if it is empty."""
    with contextlib.suppress(OSError):
        os.unlink(path)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(path))
