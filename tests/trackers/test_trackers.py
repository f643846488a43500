"""The metrics that trackers and training frameworks receive, with their real libraries and a
simulated GPU that the test uses.
"""

import csv
import json
import os
import struct
import sys
import tempfile
import time
import unittest
from collections.abc import Iterator
from pathlib import Path

# These variables must be set before the libraries are loaded, because the libraries search for real
# GPUs and servers.
os.environ |= {
    "CUDA_VISIBLE_DEVICES": "",
    "KERAS_BACKEND": "torch",
    "WANDB_MODE": "offline",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from simulated import GPUS, SimulatedGpuTest, make_constant_process  # noqa: E402

EPOCH = {
    f"gpu/{name}"
    for name in ("duration_seconds", "time_seconds", "peak_memory_bytes", "energy_joules")
}
RUN = {name.replace("gpu/", "gpu/run/") for name in EPOCH}
#: The duration of an epoch in seconds.
EPOCH_S = 0.4
EPOCHS = 3


def wandb_records(file: bytes) -> "Iterator[bytes]":
    """Yield the records of a W&B file. After a header, the file is a LevelDB log: blocks of parts,
    each part with a CRC, a size and a type.
    """
    at, record = 7, b""
    while at + 7 <= len(file):
        room = 32768 - at % 32768
        _, size, kind = struct.unpack_from("<IHB", file, at) if room >= 7 else (0, 0, 0)
        if kind == 0:
            at += room
            continue
        record = (record if kind in (3, 4) else b"") + file[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):
            yield record


def record_values(items) -> dict:
    """Return the values of a record by name."""
    return {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}


class TrackerTest(SimulatedGpuTest):
    """A test in its own folder. In the scenario, this process uses GPU 0 for half of the time, with
    4 GiB of memory. The GPU draws 300 W.
    """

    def setUp(self) -> None:
        super().setUp()
        here = os.getcwd()
        work = tempfile.mkdtemp(dir=self.folder)
        os.chdir(work)
        self.addCleanup(os.chdir, here)
        self.set_scenario(GPUS + make_constant_process(os.getpid()))
        self.warm_up()

    def assert_epochs(self, by_step: "list[tuple[int, dict]]", steps: "list[int]") -> None:
        """Check that each epoch has all metrics of the simulated GPU."""
        self.assertEqual([step for step, _ in by_step], steps)
        for _, metrics in by_step:
            self.assert_metrics(metrics, "gpu/")

    def assert_metrics(self, metrics: dict, prefix: str, epochs: int = 1) -> None:
        seconds = metrics[f"{prefix}duration_seconds"]
        self.assertTrue(epochs * EPOCH_S * 0.9 <= seconds < 60, metrics)
        self.assertEqual(metrics[f"{prefix}peak_memory_bytes"], 4 << 30)
        self.assertAlmostEqual(metrics[f"{prefix}energy_joules"], 300 * seconds, delta=60 * seconds)
        self.assertAlmostEqual(metrics[f"{prefix}time_seconds"], seconds / 2, delta=0.3 * seconds)


class Trackers(TrackerTest):
    def train(self, tracker) -> None:
        with tracker:
            for number in range(EPOCHS):
                with tracker.epoch(number):
                    time.sleep(EPOCH_S)
        self.assert_metrics(tracker.totals, "gpu/run/", EPOCHS)

    def test_only_requested_framework_is_imported(self) -> None:
        code = (
            "import sys, gpumon, gpumon.trackers; from gpumon.trackers.tensorboard import "
            "TensorBoardTracker;"
            "print(sorted({'torch', 'lightning', 'keras', 'mlflow', 'wandb', 'transformers', "
            "'tensorboard'} & set(sys.modules)))"
        )
        self.assertEqual(os.popen(f'"{sys.executable}" -c "{code}"').read(), "[]\n")

    def test_training_does_not_wait_for_cost(self) -> None:
        from gpumon.trackers import Tracker

        class Log(Tracker):
            def __init__(self) -> None:
                super().__init__()
                self.logged: list = []

            def log_metrics(self, metrics: dict, step: "int | None") -> None:
                self.logged.append((step, set(metrics)))

        with Log() as tracker:
            begun = time.monotonic()
            for number in range(20):
                with tracker.epoch(number):
                    time.sleep(0.01)
            self.assertLess(time.monotonic() - begun, 1)
        self.assertEqual([step for step, _ in tracker.logged], [*range(20), None])
        with self.assertRaises(ZeroDivisionError), Log() as tracker, tracker.epoch(0):
            time.sleep(EPOCH_S)
            1 / 0
        self.assertEqual(tracker.logged, [(None, RUN)])

    def test_mlflow_tracker_logs_epochs_and_run(self) -> None:
        import mlflow

        from gpumon.trackers.mlflow import MlflowTracker

        mlflow.set_tracking_uri(f"sqlite:///{os.getcwd()}/runs.db")
        with mlflow.start_run() as active:
            self.train(MlflowTracker())
        client = mlflow.MlflowClient()
        self.assertLessEqual(EPOCH | RUN, set(client.get_run(active.info.run_id).data.metrics))
        history = {name: client.get_metric_history(active.info.run_id, name) for name in EPOCH}
        steps = [metric.step for metric in history["gpu/energy_joules"]]
        self.assert_epochs(
            [(s, {name: one[s].value for name, one in history.items()}) for s in steps], [0, 1, 2]
        )
        other = client.create_run("0")
        self.train(MlflowTracker(other.info.run_id))
        self.assertLessEqual(RUN, set(client.get_run(other.info.run_id).data.metrics))

    def test_wandb_tracker_logs_epochs_and_run(self) -> None:
        import wandb
        from wandb.proto import wandb_internal_pb2

        from gpumon.trackers.wandb import WandbTracker

        with wandb.init(project="test") as run:
            tracker = WandbTracker(run)
            run.log({"loss": 1.0})
            self.train(tracker)
            written = run.settings.sync_file
        # This file has the data that would be sent to a server.
        rows, summary = [], {}
        for data in wandb_records(Path(written).read_bytes()):
            record = wandb_internal_pb2.Record.FromString(data)
            if record.HasField("history"):
                rows.append(record_values(record.history.item))
            if record.HasField("summary"):
                summary |= record_values(record.summary.update)
        epochs = [row for row in rows if "gpu/energy_joules" in row]
        self.assert_epochs([(row["gpu/epoch"], row) for row in epochs], [0, 1, 2])
        self.assert_metrics(summary, "gpu/run/", EPOCHS)

    def test_tensorboard_tracker_logs_epochs_and_run(self) -> None:
        import tensorboardX
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        from torch.utils import tensorboard

        from gpumon.trackers.tensorboard import TensorBoardTracker

        for writers in (tensorboard, tensorboardX):
            with self.subTest(writers.__name__):
                with writers.SummaryWriter(writers.__name__) as writer:
                    self.train(TensorBoardTracker(writer))
                events = EventAccumulator(writers.__name__)
                events.Reload()
                read = {name: events.Scalars(name) for name in events.Tags()["scalars"]}
                self.assertEqual(set(read), EPOCH | RUN)
                steps = [event.step for event in read["gpu/energy_joules"]]
                self.assert_epochs(
                    [(s, {name: read[name][s].value for name in EPOCH}) for s in steps], [0, 1, 2]
                )
                self.assertEqual([event.step for event in read["gpu/run/energy_joules"]], [2])


class Frameworks(TrackerTest):
    def run_lightning(self, pl, loggers) -> None:
        import torch

        from gpumon.trackers.lightning import GpuCostCallback

        class Model(pl.LightningModule):
            def __init__(self) -> None:
                super().__init__()
                self.layer = torch.nn.Linear(4, 1)

            def training_step(self, batch, _index):
                time.sleep(EPOCH_S / 2)
                return self.layer(batch[0]).mean()

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), 0.1)

        data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 4)), 4)
        callback = GpuCostCallback()
        quiet = {
            "enable_progress_bar": False,
            "enable_model_summary": False,
            "enable_checkpointing": False,
        }
        log = [loggers.CSVLogger("."), loggers.TensorBoardLogger(".")]
        trainer = pl.Trainer(
            max_epochs=EPOCHS, accelerator="cpu", callbacks=[callback], logger=log, **quiet
        )
        trainer.fit(Model(), data)
        with open(Path(log[0].log_dir, "metrics.csv")) as file:
            rows = [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(file)]
        epochs = [row for row in rows if "gpu/energy_joules" in row]
        self.assert_epochs([(row["step"], row) for row in epochs], [2, 4, 6])
        (run,) = [row for row in rows if "gpu/run/energy_joules" in row]
        self.assert_metrics(run, "gpu/run/", EPOCHS)
        self.assertEqual(run["step"], 6)

    def test_lightning_loggers_receive_costs(self) -> None:
        import lightning.pytorch as pl
        from lightning.pytorch import loggers

        self.run_lightning(pl, loggers)

    def test_transformers(self) -> None:
        import mlflow
        import torch
        from transformers import Trainer, TrainingArguments

        from gpumon.trackers.transformers import GpuCostCallback

        class Model(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = torch.nn.Linear(4, 1)

            def forward(self, x, labels=None):
                time.sleep(EPOCH_S / 2)
                y = self.layer(x)
                return {"loss": ((y - labels) ** 2).mean(), "logits": y}

        mlflow.set_tracking_uri(f"sqlite:///{os.getcwd()}/runs.db")
        data = [{"x": torch.randn(4), "labels": torch.randn(1)} for _ in range(8)]
        arguments = TrainingArguments(
            "out", num_train_epochs=EPOCHS, per_device_train_batch_size=4, use_cpu=True,
            report_to=["tensorboard", "mlflow"], disable_tqdm=True, save_strategy="no",
        )  # fmt: skip
        trainer = Trainer(Model(), arguments, train_dataset=data)
        trainer.add_callback(GpuCostCallback(trainer))
        trainer.train()
        epochs = [one for one in trainer.state.log_history if "gpu/energy_joules" in one]
        self.assert_epochs([(one["step"], one) for one in epochs], [2, 4, 6])
        (run,) = [one for one in trainer.state.log_history if "gpu/run/energy_joules" in one]
        self.assert_metrics(run, "gpu/run/", EPOCHS)
        # The run contains all metrics, and was not reopened after its end.
        (reported,) = mlflow.search_runs(output_format="list")
        self.assertLessEqual(EPOCH | RUN, set(reported.data.metrics))
        self.assertEqual(reported.info.status, "FINISHED")

    def test_keras_callback_logs_epochs_and_totals(self) -> None:
        import keras
        import numpy

        from gpumon.trackers.keras import GpuCostCallback

        class SlowCallback(keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None) -> None:
                time.sleep(EPOCH_S)

        model = keras.Sequential([keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        callback = GpuCostCallback()
        callbacks = [SlowCallback(), callback, keras.callbacks.CSVLogger("log.csv")]
        data = numpy.zeros((4, 4)), numpy.zeros((4, 1))
        history = model.fit(*data, epochs=EPOCHS, verbose=0, callbacks=callbacks).history
        rows = [(epoch, {name: history[name][epoch] for name in EPOCH}) for epoch in range(EPOCHS)]
        self.assert_epochs(rows, [0, 1, 2])
        self.assert_metrics(callback.totals, "gpu/run/", EPOCHS)
        self.assertIn("gpu/energy_joules", Path("log.csv").read_text())


if __name__ == "__main__":
    unittest.main()
