"""The format of /metrics, checked by the parsers of Prometheus' Python client, by promtool, and by
a real server.
"""

import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

import gpumon
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics

sys.path.append(str(Path(__file__).resolve().parents[1] / "prometheus"))
import run  # noqa: E402

OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
#: The maximum time to wait in seconds. Slow readings appear some seconds after the first sample.
PATIENCE_S = 60
#: A slow reading, and a rate, which needs two readings.
LATE_METRICS = ("gpumon_gpu_remapped_rows_total", "gpumon_gpu_pcie_receive_bytes_per_second")


class Metrics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.server = run.start_gpumon(gpumon.find_gpumon_bin(), cls.folder.name)
        cls.port = cls.server.__enter__()
        end = time.monotonic() + PATIENCE_S
        while not all(name in cls.get("/metrics")[1] for name in LATE_METRICS):
            if time.monotonic() > end:
                raise TimeoutError("the server still has no slow readings")
            time.sleep(0.2)

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__(None, None, None)
        cls.folder.cleanup()

    @classmethod
    def get(cls, path, accept="*/*"):
        """Return the content type and the page."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{cls.port}{path}", headers={"Accept": accept}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.headers["Content-Type"], answer.read().decode()

    def test_parser_accepts_open_metrics(self):
        accept = (
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
        )
        kind, page = self.get("/metrics?links=true", accept)
        self.assertEqual(kind, OPEN_METRICS)
        self.assertTrue(page.endswith("\n# EOF\n"))
        families = {
            family.name: family for family in openmetrics.text_string_to_metric_families(page)
        }
        energy = families["gpumon_gpu_energy_joules"]
        self.assertEqual((energy.type, energy.unit), ("counter", "joules"))
        self.assertEqual(
            {sample.name for sample in energy.samples}, {"gpumon_gpu_energy_joules_total"}
        )
        self.assertEqual(families["gpumon_host_network_receive_bytes"].unit, "bytes")
        self.assertEqual(
            families["gpumon_gpu_pcie_receive_bytes_per_second"].unit, "bytes_per_second"
        )
        self.assertEqual(len(families["gpumon_nvlink_up"].samples), 18)

    def test_text_format_has_same_metrics(self):
        of_text = {}
        kind, page = self.get("/metrics", "text/plain")
        self.assertTrue(kind.startswith("text/plain; version=0.0.4"))
        for family in parser.text_string_to_metric_families(page):
            of_text[family.name] = {
                (sample.name, *sorted(sample.labels.items())) for sample in family.samples
            }
        page = self.get("/metrics", OPEN_METRICS)[1]
        of_open_metrics = {
            family.name: {
                (sample.name, *sorted(sample.labels.items())) for sample in family.samples
            }
            for family in openmetrics.text_string_to_metric_families(page)
        }
        self.assertEqual(of_text, of_open_metrics)
        self.assertNotIn("gpumon_nvlink_up", of_text)

    def test_dcgm_metrics_are_always_text(self):
        for path, name in [
            ("/metrics/dcgm", "DCGM_FI_DEV_FB_TOTAL"),
            ("/metrics/dcgm-4.9", "DCGM_FI_DEV_FB_CAPACITY_BYTES"),
        ]:
            kind, page = self.get(path, OPEN_METRICS)
            self.assertTrue(kind.startswith("text/plain"), kind)
            self.assertIn(
                name, {family.name for family in parser.text_string_to_metric_families(page)}
            )
            self.assertEqual(
                page.count("# TYPE"),
                self.get(f"/metrics?format={path.rsplit('/')[-1]}")[1].count("# TYPE"),
            )

    def test_promtool_accepts_metrics(self):
        page = self.get("/metrics?links=true")[1]
        done = subprocess.run(
            ["promtool", "check", "metrics"],
            input=page,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_unknown_format_is_refused_with_valid_formats(self):
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.get("/metrics?format=dcgm-4.10")
        with refused.exception as answer:
            self.assertEqual(answer.code, 400)
            self.assertIn("dcgm-4.9", answer.read().decode())

    def test_prometheus_has_data_for_dashboards_and_alerts(self):
        told = []
        wrong = run.find_differences(gpumon.find_gpumon_bin(), told.append)
        self.assertEqual(wrong, [], "\n".join(told))


if __name__ == "__main__":
    unittest.main()
