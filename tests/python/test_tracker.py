"""Trackers whose server fails: the run continues with one warning."""

import importlib
import sys
import types
import unittest
import warnings
from unittest import mock

import gpumon
from gpumon.trackers import Tracker
from stand_in import StandInTest


class UnreachableTracker(Tracker):
    """A tracker whose server cannot be reached."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error
        self.steps: "list[int | None]" = []

    def log_metrics(self, metrics: "dict[str, float]", step: "int | None") -> None:
        self.steps.append(step)
        raise self.error


class Trackers(StandInTest):
    def test_failing_server_does_not_end_the_run(self) -> None:
        tracker, done = UnreachableTracker(ConnectionError("no route to host")), []
        with self.assertWarns(gpumon.GpumonWarning) as caught:
            with tracker:
                for number in range(3):
                    with tracker.epoch(number):
                        done.append(number)
        self.assertEqual((done, tracker.steps), ([0, 1, 2], [0, 1, 2, None]))
        self.assertEqual(tracker.totals["gpu/run/time_seconds"], 9.8)
        (warning,) = caught.warnings
        self.assertRegex(
            str(warning.message),
            "^UnreachableTracker cannot log .*: ConnectionError: no route to host. "
            "The run continues",
        )
        self.assertEqual(warning.filename, __file__)

    def test_only_first_tracker_error_causes_warning(self) -> None:
        tracker = UnreachableTracker(OSError("gone"))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                tracker.start()
                tracker.start_epoch()
                tracker.stop_epoch(7, is_logged_now=True)
                tracker.stop()
        self.assertEqual((len(caught), tracker.steps), (1, [7, None, 7, None]))

    def test_training_error_is_not_replaced_by_tracker_error(self) -> None:
        with (
            self.assertWarns(gpumon.GpumonWarning),
            self.assertRaisesRegex(ZeroDivisionError, "mine"),
        ):
            with UnreachableTracker(OSError("gone")):
                raise ZeroDivisionError("mine")

    def test_interrupt_while_logging_ends_the_run(self) -> None:
        with self.assertRaises(KeyboardInterrupt), UnreachableTracker(KeyboardInterrupt()):
            pass

    def test_failing_lightning_logger_does_not_affect_other_loggers(self) -> None:
        library = types.SimpleNamespace(Callback=type("Callback", (), {}))
        with mock.patch.dict(sys.modules, {"lightning.pytorch": library}):
            sys.modules.pop("gpumon.trackers.lightning", None)
            callback = importlib.import_module("gpumon.trackers.lightning").GpuCostCallback()
        failing, working = mock.Mock(), mock.Mock()
        failing.log_metrics.side_effect = ConnectionError("no route to host")
        trainer = mock.Mock(is_global_zero=True, global_step=5, loggers=[failing, working])
        callback.on_train_start(trainer, None)
        callback.on_train_epoch_start(trainer, None)
        callback.on_train_epoch_end(trainer, None)
        with self.assertWarnsRegex(gpumon.GpumonWarning, "GpuCostCallback cannot log"):
            callback.on_train_end(trainer, None)
        self.assertEqual(
            [call.kwargs["step"] for call in working.log_metrics.call_args_list], [5, 5]
        )


if __name__ == "__main__":
    unittest.main()
