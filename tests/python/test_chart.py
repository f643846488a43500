"""The chart of a cell, and the samples in it."""

import re
import unittest

from gpumon._ipython.chart import (
    COLORS,
    MOST_SAMPLES,
    Sample,
    Samples,
    chart_svg,
    cost_and_chart_html,
)
from gpumon._text import GIB

#: The backgrounds of notebooks: white, and the dark themes of JupyterLab and VS Code.
BACKGROUNDS = ("#ffffff", "#111111", "#1e1e1e", "#212121")


def relative_luminance(color: str) -> float:
    """Return the relative luminance as defined by WCAG 2."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def make_sample(at_ms: int, percent: object = 50.0) -> dict:
    gpu = {"index": 0, "utilization": {"gpu_percent": percent}, "memory": {"used_bytes": 4 * GIB}}
    return {"at_ms": at_ms, "gpus": [gpu, {**gpu, "index": 1}]}


class Chart(unittest.TestCase):
    def test_colors_are_visible_on_light_and_dark(self) -> None:
        for color in COLORS:
            for background in BACKGROUNDS:
                darker, lighter = sorted(
                    (relative_luminance(color), relative_luminance(background))
                )
                self.assertGreaterEqual((lighter + 0.05) / (darker + 0.05), 3, (color, background))

    def test_absent_reading_leaves_gap_in_chart_line(self) -> None:
        taken = [Sample(at, None if at == 2 else 100.0, 1.0) for at in range(5)]
        path = re.search('d="(.*?)"', chart_svg({0: taken}))[1]
        self.assertEqual(re.sub("[^ML]", "", path), "MLML")
        self.assertRegex(path, r"^M4\.0 14\.0L74\.0 14\.0M214\.0")

    def test_chart_shows_only_used_gpus(self) -> None:
        taken = {index: [Sample(0, 1.0, 1.0), Sample(1, 1.0, 1.0)] for index in range(3)}
        cost = {"duration_s": 1.0, "name": None, "gpus": [], "lost": []}
        gpu = {
            "index": 1,
            "name": None,
            "gpu_s": None,
            "sm_percent": None,
            "peak_memory_bytes": None,
            "energy_joules": None,
        }
        unknown = {"gpu_s": None, "peak_memory_bytes": None, "energy_joules": None}
        self.assertEqual(cost_and_chart_html(cost, taken).count("<path"), 6)
        self.assertEqual(
            cost_and_chart_html({**cost, **unknown, "gpus": [gpu]}, taken).count("<path"), 2
        )

    def test_chart_requires_at_least_two_samples(self) -> None:
        self.assertEqual(chart_svg({}), "")
        self.assertEqual(chart_svg({0: [Sample(0, 1.0, 1.0)]}), "")

    def test_samples_of_long_cell_are_thinned_evenly(self) -> None:
        samples = Samples()
        for at in range(20_000):
            samples.add(make_sample(at))
        for taken in samples.samples_by_gpu().values():
            self.assertTrue(MOST_SAMPLES / 2 - 1 <= len(taken) <= MOST_SAMPLES, len(taken))
            self.assertLess(taken[0].at_ms, 300)
            self.assertGreater(taken[-1].at_ms, 19_700)
            steps = {b.at_ms - a.at_ms for a, b in zip(taken, taken[1:])}
            self.assertLessEqual(len(steps), 2, steps)

    def test_absent_reading_is_stored_as_none(self) -> None:
        samples = Samples()
        samples.add(make_sample(1, {"absent": "not_supported"}))
        self.assertEqual(samples.samples_by_gpu()[0], [Sample(1, None, 4 * GIB)])


if __name__ == "__main__":
    unittest.main()
