"""`gpumon schema` describes gpumon's output, as checked by an independent validator."""

import copy
import json
import os
import subprocess
import tempfile
import time
import unittest
import urllib.request

import gpumon
from jsonschema import Draft202012Validator
from program import run_gpumon, fake_nvml_variables, read_snapshot

# A machine with all features and many problems.
RICH = f"""
gpus = 4
[[gpu]]
index = 0
throttle_reasons = ["sw_power_cap", "hw_thermal_slowdown"]
ecc_uncorrected = 2
fans = 2
[[gpu]]
index = 1
mig = [{{ profile = "3g.71gb", gpu_instance = 2 }}, {{ profile = "1g.18gb", gpu_instance = 7 }}]
[[gpu]]
index = 2
architecture = "pascal"
[[event]]
gpu = 0
at_s = 1
kind = "xid"
code = 31
[[fault]]
kind = "lost"
gpu = 3
from_s = 1
[[process]]
gpu = 0
pid = {os.getpid()}
memory = "1 GiB"
"""

#: The maximum time to wait on a busy machine, in seconds.
PATIENCE_S = 30


def make_validator(of: str) -> Draft202012Validator:
    schema = json.loads(run_gpumon("schema", of))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


class Schema(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def assert_valid(self, validator: Draft202012Validator, value: object) -> None:
        complaints = [
            f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)
        ]
        self.assertEqual(complaints, [])

    def start_server(self, env: dict[str, str]) -> str:
        """Start a server that ends with the test. Return the address of the page."""
        command = [
            gpumon.find_gpumon_bin(),
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--interval-ms",
            "200",
        ]
        server = subprocess.Popen(command, env=os.environ | env, stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        return server.stderr.readline().split()[-1].rstrip("/")

    def test_json_output_matches_schema(self) -> None:
        env = fake_nvml_variables(self.folder, RICH)
        of_snapshot = make_validator("snapshot")
        self.assert_valid(of_snapshot, read_snapshot(**env))
        page = self.start_server(env)
        until = time.monotonic() + PATIENCE_S
        while True:
            with urllib.request.urlopen(f"{page}/api/v1/snapshot?history_s=60") as answer:
                now = json.load(answer)
            if now["events"] and now["sample"] and now["sample"]["gpus"][0]["conditions"]:
                break
            self.assertLess(time.monotonic(), until, "there are no events and conditions")
            time.sleep(0.02)
        self.assert_valid(of_snapshot, now)
        of_record = make_validator("record")
        lines = run_gpumon("collect", "--count", "3", "--interval-ms", "200", **env).splitlines()
        self.assertGreater(len(lines), 5)
        for line in lines:
            self.assert_valid(of_record, json.loads(line))

    def test_schema_refuses_wrong_snapshots(self) -> None:
        of_snapshot = make_validator("snapshot")
        good = read_snapshot(**fake_nvml_variables(self.folder, "gpus = 1"))
        self.assert_valid(of_snapshot, good)
        wrong = {
            "an index that is a string": lambda whole, gpu: gpu.update(index="0"),
            "an unknown reason for absence": lambda whole, gpu: gpu["power"].update(
                draw_watts={"absent": "because"}
            ),
            "an unknown health": lambda whole, gpu: gpu.update(health={"state": "fine"}),
            "a process without readings": lambda whole, gpu: gpu.update(processes=[{"pid": 1}]),
            "no inventory": lambda whole, gpu: whole.pop("inventory"),
        }
        for name, change in wrong.items():
            with self.subTest(name):
                whole = copy.deepcopy(good)
                change(whole, whole["sample"]["gpus"][0])
                self.assertFalse(of_snapshot.is_valid(whole))


if __name__ == "__main__":
    unittest.main()
