"""Invalid arguments are refused immediately, with a message that names valid ones."""

import datetime
import os
import subprocess
import sys
import time
import unittest
from unittest import mock

import gpumon
import gpumon._helper as helper
import gpumon._mail as mail
import numpy
import pandas
from simulated import GPUS, SimulatedGpuTest
from stand_in import StandInTest

NAN, INFINITY, HUGE = float("nan"), float("inf"), 10**400
FIELD = "power.draw_watts"


class Arguments(StandInTest):
    def assert_refused(self, cases: "list[tuple[object, type[Exception], str]]", call) -> None:
        for value, error, cure in cases:
            with (
                self.subTest(value=repr(value)[:60]),
                self.assertRaisesRegex(error, cure) as caught,
            ):
                call(value)
            self.assertLess(len(str(caught.exception)), 300)
        self.assertEqual(self.wait_for_lines(), [], "the request was sent to the program")

    def test_impossible_pid_is_refused(self) -> None:
        cure = "is invalid: pass an integer from 1 to 4194304"
        wrong = [True, False, 0, -1, 2**22 + 1, 2**31, 2**40, 2**70, 2.5, 1.0, NAN, INFINITY, HUGE]
        cases = [(pid, ValueError, cure) for pid in wrong]
        cases += [(pid, TypeError, cure) for pid in ("1", "", b"1", [1], {}, object())]
        self.assert_refused(cases, lambda pid: gpumon.measure(pid=pid))
        self.assert_refused(cases, lambda pid: gpumon.Measurement(None, pid))
        self.assert_refused(cases, lambda pid: gpumon.measure(print, pid=pid))
        self.assertEqual(gpumon.measure(pid=numpy.int64(os.getpid())).pid, os.getpid())

    def test_pid_without_process_is_refused(self) -> None:
        with subprocess.Popen([sys.executable, "-c", ""]) as ended:
            pass
        cure = f"^there is no process {ended.pid}; use the PID of a running process$"
        self.assert_refused([(ended.pid, ValueError, cure)], lambda pid: gpumon.measure(pid=pid))
        self.assert_refused(
            [(ended.pid, ValueError, cure)], lambda pid: gpumon.measure(print, pid=pid)
        )

    def test_name_must_be_text(self) -> None:
        cases = [
            (
                name,
                TypeError,
                r"the name of a measurement must be a string, .*convert it with str\(",
            )
            for name in (3, 2.5, True, b"a", [], HUGE)
        ]
        self.assert_refused(cases, gpumon.measure)
        self.assert_refused(cases, gpumon.Measurement)
        self.assertEqual(gpumon.measure("").name, "")
        self.assert_refused([(3, TypeError, "3 cannot be decorated")], gpumon.measure("step"))

    def test_invalid_points_argument_is_refused(self) -> None:
        cure = "points=.* is invalid: pass an integer from 1 to 5000"
        cases = [
            (points, ValueError, cure)
            for points in (2.5, 600.0, -1, 0, 5001, 2**40, True, NAN, INFINITY, HUGE)
        ]
        cases += [(points, TypeError, cure) for points in ("600", "", None, [600])]
        self.assert_refused(cases, lambda points: gpumon.history(FIELD, points=points))

    def test_invalid_time_arguments_are_refused(self) -> None:
        cure = "is invalid: pass "
        wrong = [
            NAN,
            INFINITY,
            -INFINITY,
            1e12,
            -1e300,
            HUGE,
            True,
            datetime.timedelta.max,
            datetime.timedelta.min,
        ]
        wrong += [datetime.datetime.min, datetime.datetime(1969, 12, 1), pandas.NaT]
        cases = [(moment, ValueError, cure) for moment in wrong]
        seconds = "is invalid: pass a number of seconds ago, a timedelta or a datetime"
        cases += [
            (moment, TypeError, seconds)
            for moment in ("10m", "", b"1", None, [600], datetime.date(2026, 1, 1))
        ]
        self.assert_refused(cases, lambda since: gpumon.history(FIELD, since))
        self.assert_refused(cases, lambda until: gpumon.history(FIELD, 600, until))
        for since, until in ((60, 120), (0, 0), (1e-9, 0)):
            with self.assertRaisesRegex(ValueError, "`since` must be earlier than `until`"):
                gpumon.history(FIELD, since, until)

    def test_invalid_fields_argument_is_refused(self) -> None:
        cases = [
            (
                fields,
                ValueError,
                r"no field was requested: pass at least one ID, for example gpumon.history\(\[",
            )
            for fields in ("", " ", [], [""], [FIELD, ""])
        ]
        cases += [
            (fields, TypeError, "the ID of a field must be a string")
            for fields in (None, 3, 2.5, True, b"a", [b"a"], [3], [None], HUGE)
        ]
        self.assert_refused(cases, gpumon.history)

    def test_impossible_interval_is_refused(self) -> None:
        cure = "interval_s=.* is invalid: pass a number of seconds from 0.1 to 3600"
        cases = [
            (interval, ValueError, cure)
            for interval in (0, 0.05, -1, 3601, NAN, INFINITY, HUGE, True)
        ]
        cases += [
            (interval, TypeError, cure)
            for interval in ("1", "", None, [1], datetime.timedelta(seconds=1))
        ]
        self.assert_refused(cases, gpumon.stream)
        self.assert_refused(cases, gpumon.Stream)
        for interval in (1, 0.5, numpy.float32(0.5), numpy.int64(2)):
            gpumon.stream(interval).close()

    def test_impossible_mark_is_refused(self) -> None:
        length = "the text of a mark must have 1 to 100 characters, but has "
        cases = [
            (text, ValueError, length + "0: describe what happens")
            for text in ("", " ", "\n", "\t\r\n")
        ]
        cases += [
            ("x" * 101, ValueError, length + "101: shorten it"),
            ("語" * 500, ValueError, length + "500: shorten it"),
        ]
        cases += [
            (text, TypeError, "the text of a mark must be a string")
            for text in (None, 3, True, b"a", ["a"], HUGE)
        ]
        self.assert_refused(cases, gpumon.mark)
        gpumon.mark(" " + "語" * 100 + "\n")
        gpumon.mark("a")
        self.assertEqual([line["mark"] for line in self.wait_for_lines(2)], ["語" * 100, "a"])

    def test_unknown_field_of_a_reading_is_refused(self) -> None:
        gpu = gpumon.Gpu({}, {"index": 0, "power": {"draw_watts": 300.0}})
        for read in (gpu.__getitem__, gpu.absence, gpumon.Snapshot({}, {"gpus": []}).__getitem__):
            for wrong in (None, 3, b"a", True, ["a"]):
                with (
                    self.subTest(wrong),
                    self.assertRaisesRegex(TypeError, "the ID of a field must be a string"),
                ):
                    read(wrong)
            for wrong in ("", ".", "power.", "power.draw", "draw_watts", "x" * 10_000):
                with (
                    self.subTest(wrong[:20]),
                    self.assertRaisesRegex(KeyError, "there is no field .*: the reference page"),
                ):
                    read(wrong)
        metrics = {FIELD: {"values": [1.0]}}
        past = gpumon.GpuHistory({"index": 0, "uuid": None, "name": None, "metrics": metrics})
        for wrong in ("", "x", 3, None):
            with (
                self.subTest(wrong),
                self.assertRaisesRegex(KeyError, f"this history has no field .*, only {FIELD}"),
            ):
                past[wrong]


class Lines(SimulatedGpuTest):
    """Lines that the real program cannot parse."""

    def setUp(self) -> None:
        super().setUp()
        self.set_scenario(GPUS)
        self.warm_up()

    def assert_request_is_refused(self, request: object, error: str) -> None:
        # A `RequestError` shows that the program answered. Without an answer, a `ProgramError`
        # would be raised after half a minute.
        with self.assertRaisesRegex(gpumon.RequestError, error):
            helper.current_helper().send_request(request)

    def test_invalid_request_is_refused_at_once(self) -> None:
        for points in (2.5, -1, True, 2**40, "600"):
            self.assert_request_is_refused(
                {"history": {"points": points}},
                "cannot parse this request: invalid .*; reinstall gpumon",
            )
        for request in (
            {"snapshot": 3},
            {"cost": -1},
            {"unheard_of": 1},
            {"mark": "\udce9"},
            {"mark": "x" * 10_000, "a": 1},
        ):
            self.assert_request_is_refused(request, "cannot parse this request")
        self.assert_request_is_refused({}, "the request contains no command")

    def test_request_line_without_json_is_refused_at_once(self) -> None:
        self.assert_request_is_refused(
            {"history": {"points": NAN}}, "cannot parse this request: .*NaN"
        )
        with mock.patch.object(
            mail.json, "dumps", return_value=mock.Mock(encode=lambda: b"\xff\xfe")
        ):
            self.assert_request_is_refused({"snapshot": True}, "cannot parse this request")
        # The program still answers, without a restart.
        self.assertEqual(len(gpumon.snapshot().gpus), 2)
        self.assertEqual(helper.current_helper()._short_lives, 0)

    def test_program_and_server_refuse_same_marks(self) -> None:
        for text, count in (("", 0), (" ", 0), ("x" * 500, 500), ("語" * 101, 101)):
            self.assert_request_is_refused(
                {"mark": text}, f"the text of a mark must have 1 to 100 characters, but has {count}"
            )
        with gpumon.measure() as m:
            gpumon.mark("語" * 100)
            helper.current_helper()._process.send(b'{"mark": ""}\n')
        self.assertEqual([mark["text"] for mark in m.to_dict()["marks"]], ["語" * 100])

    def test_measuring_process_that_has_ended_is_reported(self) -> None:
        with subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
        ) as other:
            m = gpumon.measure(pid=other.pid)
        with m:
            time.sleep(0.1)
        self.assertIn(f"there is no process {other.pid}; use the PID of a running process", m.lost)
        self.assertIsNone(m.gpu_s)


if __name__ == "__main__":
    unittest.main()
