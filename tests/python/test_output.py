"""Output of the package if standard output is ASCII."""

import os
import subprocess
import sys
import unittest
from unittest import mock

import gpumon
from gpumon._text import escape_unencodable
from simulated import GPUS, PATIENCE_S, SimulatedGpuTest, make_constant_process


class Encodable(unittest.TestCase):
    def encode_for(self, text: str, encoding: "str | None") -> str:
        with mock.patch.object(sys, "stdout", mock.Mock(encoding=encoding)):
            return escape_unencodable(text)

    def test_text_is_simplified_only_if_encoding_requires_it(self) -> None:
        text = "45 °C – ü…"
        for encoding in ("utf-8", None):
            self.assertEqual(self.encode_for(text, encoding), text)
        self.assertEqual(self.encode_for(text, "ascii"), "45 C - \\xfc...")
        self.assertEqual(self.encode_for(text, "latin-1"), "45 C - ü...")
        self.assertEqual(self.encode_for("a\udce9", "utf-8"), "a\\udce9")

    def test_text_is_unchanged_without_standard_output(self) -> None:
        with mock.patch.object(sys, "stdout", None):
            self.assertEqual(escape_unencodable("45 °C"), "45 °C")


class Ascii(SimulatedGpuTest):
    """Programs with ASCII as the encoding of standard output."""

    def setUp(self) -> None:
        super().setUp()
        self.set_scenario(
            GPUS
            + 'name = "NVIDIA Ü"\ntemperature_celsius = 45\n'
            + make_constant_process(os.getpid())
        )

    def run_with_ascii(self, code: str, *options: str) -> str:
        environment = os.environ | {"PYTHONIOENCODING": "ascii", "IPYTHONDIR": str(self.folder)}
        done = subprocess.run(
            [sys.executable, *options, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertTrue(done.stdout.isascii())
        return done.stdout

    def test_each_result_can_be_printed(self) -> None:
        code = (
            "import gpumon, os\n"
            "now = gpumon.snapshot()\n"
            "print(now, now.gpus, now.gpus[0].processes, [now], sep='\\n')\n"
            f"with gpumon.measure('ü', pid={os.getpid()}) as m:\n"
            "  print(m, [m], m.gpus)\n"
            "print(m, [m], m.gpus, [gpumon.measure('ü')])\n"
            "print(gpumon.GpuHistory({'index': 0, 'uuid': None, 'name': 'Ü', 'metrics': {}}))\n"
            "print(gpumon.Condition('hot', 1, 2, '45 °C'))\n"
        )
        printed = self.run_with_ascii(code)
        self.assertRegex(printed, r"(?m)^  0  NVIDIA \\xdc .*  45 C$")
        for expected in (
            r"[<Gpu 0 NVIDIA \xdc>",
            r"<Measurement '\xfc'",
            r"<GpuHistory 0 \xdc>",
            "text='45 C')",
        ):
            self.assertIn(expected, printed)

    def test_magics_can_be_shown_in_a_terminal(self) -> None:
        code = "%load_ext gpumon\n%gpu\n%gpu on"
        printed = self.run_with_ascii(code, "-m", "IPython")
        self.assertRegex(printed, r"(?m)^  0  NVIDIA \\xdc .*  45 C$")
        cell = "get_ipython().run_cell('%load_ext gpumon'); get_ipython().run_cell('%%gpu ü\\n1')"
        self.assertRegex(self.run_with_ascii(cell, "-m", "IPython"), r"(?m)^[\d.]+ m?s, ")

    def test_error_can_be_shown_in_a_terminal(self) -> None:
        os.environ |= {"GPUMON_SOURCE": "nvml", "GPUMON_NVML_LIB": "/ü.so"}
        printed = self.run_with_ascii("%load_ext gpumon\n%gpu", "-W", "ignore", "-m", "IPython")
        self.assertIn(r"gpumon: cannot load NVIDIA's management library /\xfc.so", printed)


class Terminal(unittest.TestCase):
    def test_results_keep_non_ascii_letters_in_utf8(self) -> None:
        gpu = gpumon.Gpu({"name": "Ü\x1b[2J"}, {"index": 0})
        with mock.patch.object(sys, "stdout", mock.Mock(encoding="utf-8")):
            self.assertEqual(repr(gpu), r"<Gpu 0 Ü\x1b[2J>")


if __name__ == "__main__":
    unittest.main()
