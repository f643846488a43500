"""The Python files of the wheel as installed."""

import contextlib
import importlib.metadata
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import gpumon
import gpumon._find as find
from gpumon.jupyter import setup_gpumon


def launcher_path(**variables: str) -> str:
    """Return the path that jupyter-server-proxy uses for gpumon. The environment has only these
    variables, and there are no other settings files.
    """
    with mock.patch.dict(os.environ, {"GPUMON_CONFIG": "none", **variables}, clear=True):
        return setup_gpumon()["launcher_entry"]["path_info"]


@contextlib.contextmanager
def start_shared_server(folder: str, *arguments: str) -> Iterator[str]:
    """Start a server that shares its readings, with these additional arguments. Yield the path of
    its socket.
    """
    path = Path(folder, "public.sock")
    command = [
        gpumon.find_gpumon_bin(),
        "--source",
        "sim:1",
        "--config",
        "none",
        "serve",
        "--listen",
        "127.0.0.1:0",
    ]
    command += ["--no-control", "--shared-socket", str(path), *arguments]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(1200):
                if path.exists():
                    break
                time.sleep(0.05)
            yield str(path)
        finally:
            server.terminate()


@contextlib.contextmanager
def open_silent_socket(folder: str) -> Iterator[str]:
    """Yield the path of a socket that accepts connections but never answers."""
    path = str(Path(folder, "silent.sock"))
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(path)
        silent.listen()
        yield path


class FindGpumonBin(unittest.TestCase):
    def test_program_of_this_environment_is_found(self) -> None:
        path = Path(gpumon.find_gpumon_bin())
        self.assertEqual(path.parent, Path(sys.executable).parent)
        printed = subprocess.run(
            [path, "--version"], capture_output=True, text=True, check=True
        ).stdout
        self.assertEqual(
            printed.split(), ["gpumon", importlib.metadata.version("jupyterlab-gpumon")]
        )
        self.assertEqual(printed.split(), ["gpumon", gpumon.__version__])

    def test_first_executable_program_is_found(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            empty, plain, good = (Path(folder, name) for name in ("empty", "plain", "good"))
            for made, mode in ((plain, 0o644), (good, 0o755)):
                made.mkdir()
                (made / "gpumon").touch(mode)
            with mock.patch.object(
                find, "_script_folders", return_value=map(str, (empty, plain, good))
            ):
                self.assertEqual(gpumon.find_gpumon_bin(), str(good / "gpumon"))

    def test_missing_program_is_reported_with_folders_and_advice(self) -> None:
        with tempfile.TemporaryDirectory() as empty:
            with mock.patch.object(find, "_script_folders", return_value=[empty]):
                with self.assertRaises(gpumon.GpumonNotFound) as caught:
                    gpumon.find_gpumon_bin()
        self.assertIn(os.path.join(empty, "gpumon"), str(caught.exception))
        self.assertIn("pip install", str(caught.exception))

    def test_folder_next_to_package_is_searched(self) -> None:
        site_packages = Path(gpumon.__file__).parents[1]
        self.assertIn(str(site_packages / "bin"), find._script_folders())
        self.assertIn(str(site_packages.parents[2] / "bin"), find._script_folders())


class OtherPackage(unittest.TestCase):
    """Installations in which the other package called gpumon uses the same folder, and has its own
    `gpumon` command.
    """

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.site = Path(folder.name, "site-packages")
        shutil.copytree(
            Path(gpumon.__file__).parent,
            self.site / "gpumon",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        information = self.site / "gpumon-0.0.11.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: gpumon\nVersion: 0.0.11\n"
        )
        self.command = Path(folder.name, "bin", "gpumon")
        self.command.parent.mkdir()
        self.command.write_text(f"#!{sys.executable}\nprint('the other program ran')\n")
        self.command.chmod(0o755)

    def run_python(self, code: str, *folders: Path) -> "subprocess.CompletedProcess[str]":
        """Run code with the other package's folder at the start of the import path. The program is
        searched for in the `bin` folder of the other package and then in `folders`.
        """
        head = (
            f"import os, sys; sys.path.insert(0, {str(self.site)!r})\nimport gpumon._find as find\n"
        )
        head += (
            f"find._script_folders = lambda: {[str(self.command.parent), *map(str, folders)]!r}\n"
        )
        environment = {
            **os.environ,
            "GPUMON_CONFIG": "none",
            "PATH": f"{self.command.parent}:{os.environ['PATH']}",
        }
        return subprocess.run(
            [sys.executable, "-c", head + code],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def assert_has_advice(self, text: str) -> None:
        self.assertRegex(
            text,
            r"gpumon 0\.0\.11, which is another program .*"
            r"`pip uninstall gpumon jupyterlab-gpumon`, then install",
        )
        self.assertIn(str(self.site), text)

    def test_import_warning_shows_line_of_import_statement(self) -> None:
        (self.site / "user.py").write_text("# A line.\nimport gpumon\n")
        done = subprocess.run(
            [sys.executable, "user.py"], cwd=self.site, capture_output=True, text=True, check=True
        )
        self.assert_has_advice(done.stderr)
        self.assertRegex(done.stderr, r"user\.py:2: GpumonWarning: ")

    def test_import_without_other_package_does_not_warn(self) -> None:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", "import gpumon"], capture_output=True, text=True
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_command_of_other_package_is_not_accepted(self) -> None:
        done = self.run_python("find.find_gpumon_bin()")
        self.assert_has_advice(done.stderr.splitlines()[-1])
        self.assertIn("GpumonNotFound", done.stderr)
        # The command is replaced by a program that is not a script, as if this package had been
        # installed last.
        shutil.copyfile("/bin/true", self.command)
        self.assertEqual(
            self.run_python("print(find.find_gpumon_bin())").stdout, f"{self.command}\n"
        )

    def remove_other_metadata(self) -> None:
        shutil.rmtree(self.site / "gpumon-0.0.11.dist-info")

    def test_user_program_is_found_despite_system_script(self) -> None:
        self.remove_other_metadata()
        program = Path(self.site, "bin", "gpumon")
        program.parent.mkdir()
        shutil.copyfile("/bin/true", program)
        program.chmod(0o755)
        done = self.run_python("print(find.find_gpumon_bin())", program.parent)
        self.assertEqual((done.stdout, done.stderr), (f"{program}\n", ""))

    def test_script_without_package_is_not_accepted_as_program(self) -> None:
        self.remove_other_metadata()
        error = self.run_python("find.find_gpumon_bin()").stderr.splitlines()[-1]
        self.assertIn(f"{self.command} is a script of another program with the same name", error)
        self.assertIn("`pip uninstall gpumon jupyterlab-gpumon`, then install", error)

    def test_script_in_path_is_not_started_by_jupyter(self) -> None:
        self.remove_other_metadata()
        code = (
            "import subprocess; from gpumon.jupyter import setup_gpumon\n"
            "command = [part.format(unix_socket='s') for part in setup_gpumon()['command']('s')]\n"
            "sys.exit(subprocess.run(command).returncode)"
        )
        done = self.run_python(code)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(f"{self.command} is a script of another program", done.stderr)

    def test_running_overwritten_module_fails_with_advice(self) -> None:
        (self.site / "gpumon/__init__.py").write_text("# The module of the other package.\n")
        code = "import runpy; runpy.run_module('gpumon', run_name='__main__')"
        done = self.run_python(code)
        self.assertEqual(done.returncode, 1)
        self.assert_has_advice(done.stderr)

    def test_overwritten_command_is_reported_to_panel_and_log(self) -> None:
        code = (
            "import subprocess; from gpumon.jupyter import setup_gpumon; made = setup_gpumon()\n"
            "print(made['launcher_entry']['path_info'])\n"
            "command = [part.format(unix_socket='s') for part in made['command']('s')]\n"
            "sys.exit(subprocess.run(command).returncode)"
        )
        done = self.run_python(code)
        self.assertEqual((done.returncode, done.stdout), (1, "gpumon/?other=0.0.11\n"))
        self.assert_has_advice(done.stderr.splitlines()[-1])

    def test_other_package_is_reported_together_with_alerts(self) -> None:
        os.remove(self.command)
        self.command.symlink_to(gpumon.find_gpumon_bin())
        code = (
            "from gpumon.jupyter import setup_gpumon; "
            "print(setup_gpumon()['launcher_entry']['path_info'])"
        )
        done = self.run_python(f"os.environ['GPUMON_ALERTS'] = 'a.toml'; {code}")
        self.assertEqual(done.stdout, "gpumon/?alerts&other=0.0.11\n")


class PythonDashM(unittest.TestCase):
    def test_running_module_returns_exit_code_of_program(self) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "gpumon", "--source", "nonsense"], capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 2)
        self.assertIn("nonsense", done.stderr)


class SetupGpumon(unittest.TestCase):
    def test_entry_point_is_found_by_jupyter_server_proxy(self) -> None:
        found = importlib.metadata.distribution("jupyterlab-gpumon").entry_points
        (entry,) = [entry for entry in found if entry.group == "jupyter_serverproxy_servers"]
        self.assertEqual(entry.name, "gpumon")
        self.assertIs(entry.load(), setup_gpumon)

    def test_program_is_started_on_a_socket(self) -> None:
        process = setup_gpumon()
        socket = "/run/user/1000/s"
        command = [part.format(unix_socket=socket) for part in process["command"](socket)]
        self.assertEqual(
            command[:5],
            [gpumon.find_gpumon_bin(), "serve", "--socket", socket, "--exit-with-parent"],
        )
        self.assertTrue(process["unix_socket"])
        self.assertFalse(process["update_last_activity"])

    def test_recording_from_environment_is_replayed(self) -> None:
        with mock.patch.dict(os.environ, {"GPUMON_REPLAY": "/data/{a}.gz"}):
            command = [part.format(unix_socket="s") for part in setup_gpumon()["command"]("s")]
        expected = ["replay", "/data/{a}.gz", "--serve", "--socket", "s", "--exit-with-parent"]
        self.assertEqual(command[1:], expected)

    def test_launcher_path_has_alerts_parameter_if_configured(self) -> None:
        alone = {"GPUMON_NO_JOIN": "1"}
        self.assertEqual(
            launcher_path(**alone, GPUMON_ALERTS="/etc/gpumon/alerts.toml"), "gpumon/?alerts"
        )
        self.assertEqual(launcher_path(**alone), "gpumon/")
        self.assertEqual(launcher_path(**alone, GPUMON_ALERTS=""), "gpumon/")
        self.assertEqual(
            launcher_path(**alone, GPUMON_ALERTS="a", GPUMON_REPLAY="b"),
            "gpumon/",
            "a recording has no alert rules",
        )
        with tempfile.TemporaryDirectory() as folder:
            settings = Path(folder, "config.toml")
            settings.write_text('[serve]\nalerts = "alerts.toml"\n')
            self.assertEqual(launcher_path(**alone, GPUMON_CONFIG=str(settings)), "gpumon/?alerts")
            settings.write_text("[serve\n")
            self.assertEqual(
                launcher_path(**alone, GPUMON_CONFIG=str(settings)),
                "gpumon/",
                "a server with these settings does not start",
            )

    def test_launcher_path_has_fleet_parameter_if_configured(self) -> None:
        alone = {"GPUMON_NO_JOIN": "1"}
        self.assertEqual(
            launcher_path(**alone, GPUMON_FLEET_PROMETHEUS="http://prometheus:9090"),
            "gpumon/?fleet",
        )
        self.assertEqual(
            launcher_path(**alone, GPUMON_FLEET_HOSTS="a,b", GPUMON_ALERTS="a"),
            "gpumon/?alerts&fleet",
        )
        self.assertEqual(launcher_path(**alone, GPUMON_FLEET_PROMETHEUS=""), "gpumon/")
        with tempfile.TemporaryDirectory() as folder:
            settings = Path(folder, "config.toml")
            settings.write_text('[serve]\nfleet-prometheus = "http://prometheus:9090"\n')
            self.assertEqual(launcher_path(**alone, GPUMON_CONFIG=str(settings)), "gpumon/?fleet")

    def test_launcher_path_reports_alerts_of_joined_server(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            rules = Path(folder, "alerts.toml")
            rules.write_text(
                '[[rule]]\nname = "hot"\nfield = "temperature.gpu_celsius"\nabove = 85\n'
            )
            for more, expected in ([], "gpumon/"), (["--alerts", str(rules)], "gpumon/?alerts"):
                with start_shared_server(folder, *more) as path:
                    self.assertEqual(launcher_path(GPUMON_JOIN=path), expected)
                    self.assertEqual(launcher_path(GPUMON_JOIN=path, GPUMON_NO_JOIN="1"), "gpumon/")
            self.assertEqual(
                launcher_path(GPUMON_JOIN=path), "gpumon/", "the shared server has ended"
            )

    def test_silent_server_does_not_delay_jupyter(self) -> None:
        with tempfile.TemporaryDirectory() as folder, open_silent_socket(folder) as path:
            begun = time.monotonic()
            self.assertEqual(launcher_path(GPUMON_JOIN=path), "gpumon/")
            self.assertLess(time.monotonic() - begun, 15)

    def test_history_is_stored_in_state_folder_of_user(self) -> None:
        def data_options(**variables: str) -> list[str]:
            with mock.patch.dict(os.environ, variables, clear=True):
                command = setup_gpumon()["command"]("s")
            return [part.format(unix_socket="s") for part in command][5:]

        self.assertEqual(
            data_options(HOME="/home/ana"), ["--default-data-dir", "/home/ana/.local/state/gpumon"]
        )
        self.assertEqual(
            data_options(HOME="/home/ana", XDG_STATE_HOME="/state/{ana}"),
            ["--default-data-dir", "/state/{ana}/gpumon"],
        )
        self.assertEqual(
            data_options(HOME="/home/ana", XDG_STATE_HOME="state"),
            ["--default-data-dir", "/home/ana/.local/state/gpumon"],
        )

    def test_braces_in_program_path_are_preserved(self) -> None:
        with mock.patch("gpumon.jupyter.find_gpumon_bin", return_value="/opt/{env}/bin/gpumon"):
            program = setup_gpumon()["command"]("s")[0]
        self.assertEqual(program.format(unix_socket="s"), "/opt/{env}/bin/gpumon")

    def test_missing_program_does_not_prevent_jupyter_setup(self) -> None:
        with mock.patch(
            "gpumon.jupyter.find_gpumon_bin", side_effect=gpumon.GpumonNotFound("gone")
        ):
            self.assertEqual(setup_gpumon()["command"]("s")[0], "gpumon")

    def test_empty_socket_folder_is_removed(self) -> None:
        code = (
            "import sys; from gpumon.jupyter import setup_gpumon; "
            "setup_gpumon()['command'](sys.argv[1])"
        )
        for others in ([], ["theirs"]):
            with tempfile.TemporaryDirectory() as base:
                folder = Path(base) / "jupyter-server-proxy-x"
                folder.mkdir()
                for name in ["socket", *others]:
                    (folder / name).touch()
                subprocess.run(
                    [sys.executable, "-I", "-c", code, str(folder / "socket")], check=True
                )
                left = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
                self.assertEqual((folder.exists(), left), (bool(others), others))

    def test_import_does_not_load_other_packages(self) -> None:
        code = (
            "import sys\n"
            "before = set(sys.modules)\n"
            "import gpumon.jupyter\n"
            "files = {name: getattr(sys.modules[name], '__file__', None) or '' for name in "
            "set(sys.modules) - before}\n"
            "print(*sorted({name.partition('.')[0] for name, file in files.items() if "
            "'site-packages' in file}))"
        )
        done = subprocess.run(
            [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
        )
        self.assertEqual(done.stdout.split(), ["gpumon"])

    def test_version_attribute_is_missing_without_metadata(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(
                Path(gpumon.__file__).parent,
                Path(folder, "gpumon"),
                ignore=shutil.ignore_patterns("__pycache__"),
            )
            code = (
                f"import sys; sys.path = [{folder!r}, *(path for path in sys.path if "
                f"'site-packages' not in path)]\n"
            )
            code += (
                "import gpumon; print(getattr(gpumon, '__version__', 'none')); gpumon.__version__"
            )
            done = subprocess.run(
                [sys.executable, "-S", "-c", code], cwd=folder, capture_output=True, text=True
            )
        self.assertEqual(done.stdout, "none\n")
        self.assertEqual(done.stderr.count("Traceback"), 1, done.stderr)
        self.assertIn(
            "AttributeError: module 'gpumon' has no attribute '__version__': the package is not "
            "installed",
            done.stderr,
        )

    def test_import_loads_modules_lazily(self) -> None:
        code = (
            "import sys; before = set(sys.modules); import gpumon; print(*sorted(set(sys.modules) "
            "- before))"
        )
        loaded = subprocess.run(
            [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
        own = [name for name in loaded if name.startswith("gpumon")]
        self.assertEqual(own, ["gpumon", "gpumon._errors", "gpumon._find"])
        self.assertFalse({"typing", "subprocess", "socket", "json", "asyncio"} & set(loaded))


if __name__ == "__main__":
    unittest.main()
