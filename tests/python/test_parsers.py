"""Programs that parse nvidia-smi must also accept gpumon under that name."""

import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

import gpumon
from lxml import etree
from program import fake_nvml_variables, read_snapshot

SCENARIO = """
gpus = 3
seed = 7
[[gpu]]
index = 0
name = "NVIDIA H200"
utilization_percent = 96
memory_used = "61 GiB"
temperature_celsius = 64
[[gpu]]
index = 1
name = "NVIDIA GeForce RTX 4090"
architecture = "ada"
fans = 2
profile = "idle"
[[gpu]]
index = 2
profile = "held"
[[process]]
gpu = 0
pid = {pid}
memory = "61 GiB"
"""

# The values of a GPU that Telegraf's nvidia_smi input reads.
TELEGRAF = """
product_name uuid compute_mode performance_state fan_speed temperature/gpu_temp utilization/gpu_util
utilization/memory_util utilization/encoder_util utilization/decoder_util utilization/jpeg_util
utilization/ofa_util
fb_memory_usage/total fb_memory_usage/used fb_memory_usage/free fb_memory_usage/reserved
bar1_memory_usage/total bar1_memory_usage/used pci/pci_gpu_link_info/pcie_gen/current_link_gen
pci/pci_gpu_link_info/link_widths/current_link_width encoder_stats/session_count
encoder_stats/average_fps encoder_stats/average_latency fbc_stats/session_count
clocks/graphics_clock clocks/sm_clock clocks/mem_clock clocks/video_clock display_active
display_mode serial vbios_version mig_mode/current_mig
""".split()

# The additional values of a GPU that Netdata's collector reads.
NETDATA = """
product_brand product_architecture persistence_mode gpu_power_readings/average_power_draw
gpu_power_readings/current_power_limit pci/tx_util pci/rx_util
""".split()


class Parsers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = Path(cls.folder.name)
        os.symlink(gpumon.find_gpumon_bin(), folder / "nvidia-smi")
        scenario = fake_nvml_variables(folder, SCENARIO.format(pid=os.getpid()))
        cls.environment = mock.patch.dict(
            os.environ, scenario, PATH=f"{folder}:{os.environ['PATH']}"
        )
        cls.environment.start()

    @classmethod
    def tearDownClass(cls):
        cls.environment.stop()
        cls.folder.cleanup()

    def run_nvidia_smi(self, *arguments):
        return subprocess.run(
            ["nvidia-smi", *arguments], capture_output=True, text=True, check=True
        ).stdout

    def test_gputil_reads_gpus(self):
        import GPUtil

        gpus = GPUtil.getGPUs()
        read = read_snapshot()
        self.assertEqual([gpu.id for gpu in gpus], [0, 1, 2])
        self.assertEqual(
            [gpu.uuid for gpu in gpus], [gpu["uuid"] for gpu in read["inventory"]["gpus"]]
        )
        self.assertEqual([gpu.name for gpu in gpus[:2]], ["NVIDIA H200", "NVIDIA GeForce RTX 4090"])
        self.assertEqual(
            {gpu.driver for gpu in gpus}, {read["inventory"]["platform"]["driver_version"]}
        )
        self.assertEqual((gpus[0].load, gpus[0].temperature), (0.96, 64))
        self.assertAlmostEqual(gpus[0].memoryUsed, 61 * 1024, delta=1)
        self.assertEqual(GPUtil.getAvailable(limit=8, maxLoad=0.5, maxMemory=0.05), [1])

    def test_accelerate_reads_gpus(self):
        source = importlib.util.find_spec("accelerate").submodule_search_locations[0]
        spec = importlib.util.spec_from_file_location(
            "environment", Path(source, "utils/environment.py")
        )
        environment = importlib.util.module_from_spec(spec)
        # The module only needs torch for the import; it queries nvidia-smi instead.
        with mock.patch.dict(sys.modules, torch=types.ModuleType("torch")):
            spec.loader.exec_module(environment)
            names, count = environment.get_gpu_info()
            driver = environment.get_driver_version()
        read = read_snapshot()["inventory"]
        self.assertEqual((names[:2], count), (["NVIDIA H200", "NVIDIA GeForce RTX 4090"], 3))
        self.assertEqual(driver, read["platform"]["driver_version"])

    def test_xml_is_valid_by_printed_dtd(self):
        dtd = etree.DTD(io.StringIO(self.run_nvidia_smi("--dtd")))
        log = etree.fromstring(self.run_nvidia_smi("-q", "-x").encode())
        self.assertTrue(dtd.validate(log), dtd.error_log)
        whole = etree.fromstring(
            self.run_nvidia_smi("-q", "-x", "--dtd").encode(), etree.XMLParser(dtd_validation=True)
        )
        self.assertEqual(len(whole.findall("gpu")), 3)

    def test_xml_has_values_for_telegraf_and_netdata(self):
        text = self.run_nvidia_smi("-q", "-x")
        self.assertIn('<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">', text)
        self.assertIn("<nvidia_smi_log>", text.splitlines())
        self.assertEqual(text.rstrip("\n").splitlines()[-1], "</nvidia_smi_log>")
        log = etree.fromstring(text.encode())
        for gpu in log.findall("gpu"):
            for path in TELEGRAF + NETDATA:
                self.assertIsNotNone(gpu.find(path), path)
        # A board without row remapping would have text in this element.
        self.assertEqual(log.findtext("gpu/remapped_rows/remapped_row_corr"), "0")
        process = log.find("gpu/processes/process_info")
        self.assertEqual(
            (process.findtext("pid"), process.findtext("type")), (str(os.getpid()), "C")
        )
        self.assertEqual(log.findtext("gpu/utilization/gpu_util"), "96 %")

    def test_table_matches_patterns_of_other_programs(self):
        table = self.run_nvidia_smi()
        driver = read_snapshot()["inventory"]["platform"]["driver_version"]
        self.assertRegex(table, rf"Driver Version: {driver} ")
        self.assertRegex(
            self.run_nvidia_smi("-L"),
            r"(?m)^GPU 1: NVIDIA GeForce RTX 4090 \(UUID: GPU-[0-9a-f-]{36}\)$",
        )


if __name__ == "__main__":
    unittest.main()
