"""Targets of a fleet: Slurm's nodes with GPUs, read by a real Prometheus from a file and from a
server.
"""

import json
import os
import re
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.request
from pathlib import Path

import gpumon
import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
PATIENCE_S = 60
SINFO = """cpu01 (null)
gpu01 gpu:h100:8(S:0-1)
gpu01 gpu:h100:8(S:0-1)
gpu02 gpu:4
"""


def find_program() -> str:
    return gpumon.find_gpumon_bin()


class Slurm(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.file = self.folder / "targets.json"

    def write_targets(self, sinfo: str, *labels: str) -> subprocess.CompletedProcess:
        fake = self.folder / "sinfo"
        fake.write_text(sinfo)
        fake.chmod(0o755)
        environment = {
            **os.environ,
            "GPUMON_SINFO": str(fake),
            "GPUMON_PROGRAM": find_program(),
            "GPUMON_PORT": "9124",
        }
        command = ["sh", DEPLOY / "slurm/targets.sh", self.file, *labels]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def test_nodes_with_gpus_become_targets(self):
        done = self.write_targets(
            f"#!/bin/sh\n[ \"$*\" = '-N -h -o %N %G' ] && cat <<'END'\n{SINFO}END\n",
            "cluster=alps",
            "room=b 1",
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        labels = {"cluster": "alps", "room": "b 1"}
        self.assertEqual(
            json.loads(self.file.read_text()),
            [{"targets": ["gpu01:9124", "gpu02:9124"], "labels": labels}],
        )
        self.assertEqual(
            self.file.stat().st_mode & 0o777,
            0o644,
            "Prometheus runs as another user, who must be able to read the file",
        )

    def test_file_is_kept_if_slurm_does_not_respond(self):
        self.file.write_text("[]")
        for broken in (
            "#!/bin/sh\nexit 1\n",
            "#!/bin/sh\necho 'slurm_load_node: Unable to contact slurm controller!'\n",
        ):
            self.assertNotEqual(self.write_targets(broken).returncode, 0)
            self.assertEqual(self.file.read_text(), "[]")
            self.assertEqual(
                sorted(path.name for path in self.folder.iterdir()), ["sinfo", "targets.json"]
            )


class Prometheus(unittest.TestCase):
    def test_prometheus_accepts_file_and_http_targets(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        hosts = ["fleet", "--hosts", "127.0.0.1:1,gpu[1-2].invalid"]
        command = [find_program(), *hosts, "--listen", "127.0.0.1:0"]
        server = self.enterContext(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        self.addCleanup(server.kill)
        address = re.search(r"http://\S+", server.stderr.readline()).group(0)
        file = folder / "targets.json"
        written = [
            find_program(),
            "fleet",
            "targets",
            "--hosts",
            "[fe80::1],gpu[1-2].invalid",
            "--label",
            "cluster=alps",
        ]
        subprocess.run([*written, "--output", file], check=True)
        jobs = [
            {"job_name": "file", "file_sd_configs": [{"files": [str(file)]}]},
            {
                "job_name": "http",
                "http_sd_configs": [{"url": f"{address}api/v1/fleet/targets?port=9400"}],
            },
        ]
        (folder / "prometheus.yml").write_text(yaml.safe_dump({"scrape_configs": jobs}))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
        log = self.enterContext(open(folder / "log", "w+"))
        command = ["prometheus", *options, f"--web.listen-address=127.0.0.1:{port}"]
        prometheus = self.enterContext(subprocess.Popen(command, stderr=log))
        self.addCleanup(prometheus.kill)
        found, end = {}, time.monotonic() + PATIENCE_S
        while len(found) < 6 and time.monotonic() < end:
            time.sleep(0.2)
            try:
                with urllib.request.urlopen(
                    f"http://127.0.0.1:{port}/api/v1/targets?state=active"
                ) as answer:
                    active = json.load(answer)["data"]["activeTargets"]
            except OSError:
                continue
            found = {
                (it["labels"]["job"], it["labels"]["instance"]): it["labels"].get("cluster")
                for it in active
            }
        expected = {
            ("file", f"{host}:9123"): "alps"
            for host in ("[fe80::1]", "gpu1.invalid", "gpu2.invalid")
        }
        expected |= {
            ("http", f"{host}:9400"): None for host in ("127.0.0.1", "gpu1.invalid", "gpu2.invalid")
        }
        self.assertEqual(found, expected, (folder / "log").read_text())


class Kubernetes(unittest.TestCase):
    def test_pod_monitor_matches_chart(self):
        import helm_python

        with helm_python.Chart.load(str(DEPLOY / "kubernetes/gpumon")) as chart:
            texts = chart.render(
                {"image": {"repository": "registry.example.org/gpumon"}},
                name="gpumon",
                namespace="monitoring",
            )
        (rendered,) = [
            yaml.safe_load(text) for name, text in texts.items() if name.endswith("podmonitor.yaml")
        ]
        plain = yaml.safe_load((DEPLOY / "kubernetes/podmonitor.yaml").read_text())
        self.assertEqual(plain["kind"], rendered["kind"])
        # The chart's labels include the release, which distinguishes its pods from those of other
        # releases. So the labels are removed before the comparison.
        for of in (plain, rendered):
            labels = of["spec"]["selector"]["matchLabels"]
            self.assertEqual(labels.pop("app.kubernetes.io/name"), "gpumon")
            labels.pop("app.kubernetes.io/instance", None)
        self.maxDiff = None
        self.assertEqual(plain["spec"], rendered["spec"])


if __name__ == "__main__":
    unittest.main()
