"""The contents of deploy/: dashboards and rules with a real Prometheus that scrapes gpumon, Slurm's
scripts, the Helm chart with its secret, names for OpenTelemetry, and JupyterHub's settings.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import gpumon
import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
sys.path += [str(ROOT / "tests/prometheus"), str(DEPLOY / "grafana"), str(DEPLOY / "prometheus")]
import run  # noqa: E402
from program import fake_nvml_variables  # noqa: E402

#: The maximum time to wait in seconds. The event in the scenario happens after 12 s, and slow
#: readings arrive earlier. Rates need several scrapes.
PATIENCE_S = 60
SCRAPES = 5
#: Values for Grafana's variables.
VARIABLES = {
    "$__rate_interval": "10s",
    "$__range": "30s",
    "$job": ".*",
    "$node": ".*",
    "$gpu": ".*",
}
#: Selectors that may have no data. Severities only exist while a condition lasts, and some rules
#: use a condition that no GPU in the scenario has.
NOT_THERE = re.compile(r"gpumon_condition_severity\{|ALERTS\{|^instance:")
METRIC = re.compile(r"(?<![\w:\"$])((?:gpumon_|instance:|ALERTS)[\w:]*(?:\{[^}]*\})?)")


def find_program() -> str:
    return gpumon.find_gpumon_bin()


def run_command(*command: object, **more) -> str:
    """Return the output of a command, which must succeed."""
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **more
    )
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def read_dashboards() -> dict[str, dict]:
    return {
        path.name: json.loads(path.read_text())
        for path in sorted((DEPLOY / "grafana").glob("*.json"))
    }


def panel_queries(dashboard: dict) -> list[str]:
    return [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]


def read_rules(name: str) -> list[dict]:
    groups = yaml.safe_load((DEPLOY / "prometheus" / name).read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def fill_variables(expression: str) -> str:
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


class DeployedQueries(unittest.TestCase):
    """A Prometheus that has scraped a busy gpumon, with a problem on each GPU."""

    @classmethod
    def setUpClass(cls):
        cls.stack = ExitStack()
        cls.addClassCleanup(cls.stack.close)
        folder = cls.stack.enter_context(tempfile.TemporaryDirectory())
        port = cls.stack.enter_context(run.start_gpumon(find_program(), folder))
        cls.address = cls.stack.enter_context(
            run.start_prometheus({"gpumon": (port, "/metrics")}, folder)
        )
        # These two metrics are the last to have data. When they have some, all others do, too.
        awaited = [
            f"count_over_time({name}[{PATIENCE_S}s]) >= {SCRAPES}"
            for name in ("gpumon_gpu_xid", "gpumon_gpu_remapped_rows_total")
        ]
        if missing := cls.find_expressions_without_data(awaited):
            raise TimeoutError(f"no data for {missing}")

    @classmethod
    def query_or_empty(cls, expression: str) -> list:
        try:
            return run.run_query(cls.address, expression)
        except OSError:
            # Prometheus refuses invalid expressions, and does not answer until it is ready.
            return []

    @classmethod
    def find_expressions_without_data(cls, expressions: Iterable[str]) -> list[str]:
        """Return the expressions that have no data within a minute. The queries are repeated,
        because no expression has data after a scrape failed on a busy machine.
        """
        missing = sorted(set(expressions))
        end = time.monotonic() + PATIENCE_S
        while (
            missing := [expression for expression in missing if not cls.query_or_empty(expression)]
        ) and time.monotonic() < end:
            time.sleep(0.5)
        return missing

    def test_every_dashboard_query_has_data(self):
        self.assertEqual(
            self.find_expressions_without_data(
                fill_variables(query)
                for model in read_dashboards().values()
                for query in panel_queries(model)
            ),
            [],
        )

    def test_every_alert_rule_expression_has_data(self):
        expressions = []
        for rule in [*read_rules("alerts.yml"), *read_rules("fleet.yml")]:
            # Some series only exist while there is a problem, so comparisons are changed to return
            # 0 or 1. Some expressions compare with values of a quarter of an hour ago, which this
            # Prometheus does not have.
            expression = run.add_bool(rule["expr"]).replace("offset 15m", "offset 1s")
            if "record" in rule:
                expressions.append(expression)
            expressions += [
                selector
                for selector in METRIC.findall(rule["expr"])
                if not NOT_THERE.search(selector)
            ]
            # The original expression may have no data, but it is also queried, because Prometheus
            # refuses it if it is invalid.
            run.run_query(self.address, rule["expr"])
        self.assertEqual(self.find_expressions_without_data(expressions), [])

    def test_metrics_renamed_for_opentelemetry_exist(self):
        names = {name for name, _ in opentelemetry_names() if not name.startswith("gpumon_memory_")}
        # Links only have series if they are requested with ?links=true. In the scenario, only GPU 0
        # has links and fans.
        names -= {name for name in names if name.startswith("gpumon_nvlink_")}
        self.assertEqual(self.find_expressions_without_data(names), [])


class Dashboards(unittest.TestCase):
    def test_dashboards_are_generated_from_current_tables(self):
        # This module is loaded by its path, because deploy/prometheus contains another module named
        # `generate`.
        generate = load_module(DEPLOY / "grafana/generate.py")
        made = {
            name: generate.to_json_text(model) for name, model in generate.make_dashboards().items()
        }
        for name, text in made.items():
            self.assertEqual(
                (DEPLOY / "grafana" / name).read_text(),
                text,
                f"run deploy/grafana/generate.py: {name}",
            )
        self.assertEqual(sorted(made), sorted(read_dashboards()))

    def test_grafana_models_know_every_dashboard_key(self):
        from grafana_foundation_sdk.cog.encoder import JSONEncoder
        from grafana_foundation_sdk.cog.plugins import register_default_plugins
        from grafana_foundation_sdk.models.dashboard import Dashboard

        register_default_plugins()
        for name, model in read_dashboards().items():
            known = json.loads(
                JSONEncoder().encode(Dashboard.from_json(json.loads(json.dumps(model))))
            )
            self.assertEqual(list(find_changed_paths(model, known)), [], name)

    def test_panels_are_complete_and_do_not_overlap(self):
        for name, model in read_dashboards().items():
            known = {variable["name"] for variable in model["templating"]["list"]} | {
                "__range",
                "__rate_interval",
            }
            cells, panels = set(), [panel for panel in model["panels"] if panel["type"] != "row"]
            self.assertGreater(len(panels), 15, name)
            self.assertEqual(len({panel["id"] for panel in model["panels"]}), len(model["panels"]))
            for panel in panels:
                self.assertTrue(
                    panel["title"] and panel["description"].endswith((".", "ms")), panel["title"]
                )
                place = panel["gridPos"]
                self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
                own = {
                    (x, y)
                    for x in range(place["x"], place["x"] + place["w"])
                    for y in range(place["y"], place["y"] + place["h"])
                }
                self.assertFalse(cells & own, panel["title"])
                cells |= own
            for query in panel_queries(model):
                self.assertLessEqual(set(re.findall(r"\$(\w+)", query)), known, query)


class Rules(unittest.TestCase):
    def test_rules_are_generated_from_example_alerts(self):
        generate = load_module(DEPLOY / "prometheus/generate.py")
        text = generate.RULES.read_text()
        self.assertEqual(
            text, generate.make_rules(find_program()), "run deploy/prometheus/generate.py"
        )

    def test_each_alert_has_description_and_severity(self):
        for rule in [*read_rules("alerts.yml"), *read_rules("fleet.yml")]:
            if "alert" in rule:
                self.assertGreater(len(rule["annotations"]["description"]), 20, rule["alert"])
                self.assertIn(rule["labels"]["severity"], ("notice", "warning", "critical"))

    def test_promtool_accepts_rules(self):
        folder = DEPLOY / "prometheus"
        run_command("promtool", "check", "rules", "alerts.yml", "fleet.yml", cwd=folder)
        run_command("promtool", "check", "config", "--syntax-only", "prometheus.yml", cwd=folder)
        run_command("promtool", "test", "rules", "fleet_test.yml", cwd=folder)


class Slurm(unittest.TestCase):
    def test_shellcheck_accepts_slurm_scripts(self):
        run_command("shellcheck", *(DEPLOY / "slurm").glob("*.sh"))

    def test_epilog_reports_job_that_prolog_has_registered(self):
        with tempfile.TemporaryDirectory() as folder:
            output, reports, gpus = (
                Path(folder, "slurm-88123.out"),
                Path(folder, "reports"),
                Path(folder, "gpustat"),
            )
            output.write_text("the job's own\n")
            environment = {
                **os.environ,
                **fake_nvml_variables(
                    folder,
                    'gpus = 4\n[[gpu]]\nindex = 3\nmig = [{ profile = "3g.71gb", gpu_instance = 2 '
                    "}]\n",
                ),
                "GPUMON_PROGRAM": find_program(),
                "GPUMON_SLURM_GPUS": str(gpus),
                "GPUMON_SLURM_DEFAULTS": str(Path(folder, "none")),
                "GPUMON_REPORTS": str(reports),
            }
            listed = run_command(find_program(), "smi", "-L", env=environment)
            uuids = re.findall(r"UUID: ([^)]+)", listed)
            mig = uuids[4]

            def run_slurm_script(script: str, **variables: str) -> None:
                run_command("sh", DEPLOY / "slurm" / script, env=environment | variables)

            job = {
                "SLURM_JOB_ID": "88123",
                "SLURM_JOB_UID": str(os.getuid()),
                "SLURM_JOB_GPUS": "0,2",
            }
            run_slurm_script("prolog.sh", **job, CUDA_VISIBLE_DEVICES="0,1")
            run_slurm_script(
                "prolog.sh", SLURM_JOB_ID="88124", SLURM_JOB_UID="1000", CUDA_VISIBLE_DEVICES=mig
            )
            run_slurm_script("prolog.sh", SLURM_JOB_ID="88125", SLURM_JOB_UID="1000")
            own = f"88123 {os.getuid()}\n"
            self.assertEqual(read_files(gpus), {uuids[0]: own, uuids[2]: own, mig: "88124 1000\n"})

            command = [
                find_program(),
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--interval-ms",
                "200",
                "--slurm-gpus",
                str(gpus),
            ]
            with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as server:
                try:
                    end = time.monotonic() + PATIENCE_S
                    while subprocess.run(
                        [find_program(), "job", "88123"],
                        env=environment,
                        capture_output=True,
                        check=False,
                    ).returncode:
                        self.assertLess(time.monotonic(), end, "the job has no report")
                        time.sleep(0.5)
                    run_slurm_script(
                        "epilog.sh",
                        **job,
                        SLURM_JOB_STDOUT="slurm-%j.out",
                        SLURM_JOB_WORK_DIR=folder,
                    )
                finally:
                    server.kill()
            self.assertTrue(
                output.read_text().startswith("the job's own\n\nSlurm job 88123"),
                output.read_text(),
            )
            self.assertIn("2 GPUs", (reports / "88123.txt").read_text())
            self.assertEqual(read_files(gpus), {mig: "88124 1000\n"})
            # The node must stay in service if there is no server, and if the job has no GPUs.
            run_slurm_script("epilog.sh", SLURM_JOB_ID="88124", SLURM_JOB_UID="1000")
            run_slurm_script("epilog.sh", SLURM_JOB_ID="88125", SLURM_JOB_UID="1000")
            self.assertEqual(read_files(gpus), {})

    def test_epilog_expands_every_sbatch_filename_symbol(self):
        text = (DEPLOY / "slurm/epilog.sh").read_text()
        function = text[text.index("output() {") :].split("\n}\n")[0] + "\n}\n"
        node = os.uname().nodename.split(".")[0]
        array = {"SLURM_ARRAY_JOB_ID": "88100", "SLURM_ARRAY_TASK_ID": "23"}
        for pattern, expected, more in [
            ("slurm-%j.out", "/home/ana/slurm-88123.out", {}),
            ("/logs/%x/%u-%J.log", "/logs/train a\\b/ana-88123.log", {}),
            ("%10j.%5j.%2j.%15j", "/home/ana/0000088123.88123.88123.0000088123", {}),
            ("%A_%a", "/home/ana/88100_23", array),
            ("%A_%4a_%b", "/home/ana/88100_0023_3", array),
            ("%A", "/home/ana/88123", {}),
            ("%N-%n-%2t-%s", f"/home/ana/{node}-0-00-batch", {}),
            ("100%%-%5N", f"/home/ana/100%-{node}", {}),
            ("a\\%j.out", "/home/ana/a%j.out", {}),
            ("plain", "/home/ana/plain", {}),
            # If a value in the pattern is unknown, the result is empty, because there is no such
            # file.
            ("%x.out", "", {"SLURM_JOB_NAME": ""}),
            ("%q.out", "", {}),
            ("", "", {}),
        ]:
            variables = {
                "SLURM_JOB_USER": "ana",
                "SLURM_JOB_NAME": "train a\\b",
                "SLURM_JOB_WORK_DIR": "/home/ana",
            } | more
            environment = {"PATH": os.environ["PATH"], "SLURM_JOB_STDOUT": pattern} | variables
            with self.subTest(pattern):
                shown = subprocess.run(
                    ["sh", "-c", f"job=88123\n{function}\noutput"],
                    env=environment,
                    capture_output=True,
                    text=True,
                    check=True,
                )
                self.assertEqual(shown.stdout, expected and expected + "\n")


class Kubernetes(unittest.TestCase):
    CHART = DEPLOY / "kubernetes/gpumon"
    IMAGE = {"image": {"repository": "registry.example/gpumon"}}
    EACH = [
        {},
        {
            "hostPID": False,
            "runtimeClassName": "",
            "podResources": "",
            "podMonitor": {"links": True},
        },
        {
            "secret": {"existing": "mine"},
            "dataDir": "/var/lib/gpumon",
            "extraArgs": ["--metrics-processes"],
        },
        {
            "prometheusRule": {"enabled": True, "labels": {"release": "p"}},
            "podMonitor": {"enabled": False},
        },
    ]

    def render_chart(self, values: dict) -> dict[str, dict]:
        import helm_python

        with helm_python.Chart.load(str(self.CHART)) as chart:
            texts = chart.render(self.IMAGE | values, name="gpumon", namespace="monitoring")
        documents = [yaml.safe_load(text) for name, text in texts.items() if name.endswith(".yaml")]
        return {document["kind"]: document for document in documents if document}

    def test_helm_lint_finds_no_errors(self):
        import helm_python

        found = helm_python.lint(str(self.CHART))
        self.assertEqual(found["errors"], [])
        self.assertEqual(
            [message["error"] for message in found["messages"]], ["icon is recommended"]
        )
        with self.assertRaises(helm_python.HelmError):
            self.render_chart({"hostPID": "perhaps"})

    def test_image_repository_is_required(self):
        import helm_python

        with self.assertRaisesRegex(
            helm_python.HelmError, r"image\.repository is not set: .*--set image\.repository="
        ):
            self.render_chart({"image": {}})
        (container,) = self.render_chart({})["DaemonSet"]["spec"]["template"]["spec"]["containers"]
        self.assertRegex(container["image"], r"^registry\.example/gpumon:\d")

    def test_kubernetes_accepts_rendered_chart(self):
        import kubernetes_validate

        for values in self.EACH:
            for kind, document in self.render_chart(values).items():
                if document["apiVersion"].startswith("monitoring.coreos.com"):
                    self.assertIn(kind, ("PodMonitor", "PrometheusRule"))
                else:
                    kubernetes_validate.validate(document, "1.34", strict=True)

    def test_container_has_minimal_rights(self):
        for values in self.EACH:
            pod = self.render_chart(values)["DaemonSet"]["spec"]["template"]["spec"]
            (container,) = pod["containers"]
            context = container["securityContext"]
            self.assertEqual(context["capabilities"], {"drop": ["ALL"]})
            self.assertTrue(context["readOnlyRootFilesystem"])
            self.assertFalse(
                context["allowPrivilegeEscalation"]
                or context["privileged"]
                or pod["automountServiceAccountToken"]
            )
            writable = [
                mount["name"] for mount in container["volumeMounts"] if not mount.get("readOnly")
            ]
            self.assertLessEqual(set(writable), {"run", "data"})
            self.assertEqual(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})

    def test_prometheus_rule_resource_contains_rules_of_files(self):
        groups = self.render_chart(self.EACH[3])["PrometheusRule"]["spec"]["groups"]
        self.assertEqual(
            [rule for group in groups for rule in group["rules"]],
            [*read_rules("alerts.yml"), *read_rules("fleet.yml")],
        )

    def test_chart_version_matches_program(self):
        chart = yaml.safe_load((self.CHART / "Chart.yaml").read_text())
        self.assertEqual(run_command(find_program(), "--version").split()[-1], chart["appVersion"])
        self.assertEqual(chart["version"], chart["appVersion"])

    def test_program_accepts_arguments_and_secret_of_chart(self):
        all_of_it = self.render_chart({})
        (container,) = all_of_it["DaemonSet"]["spec"]["template"]["spec"]["containers"]
        monitor = all_of_it["PodMonitor"]["spec"]["podMetricsEndpoints"][0]
        secret = all_of_it["Secret"]["stringData"]
        with tempfile.TemporaryDirectory() as folder:
            for name, text in secret.items():
                Path(folder, name).write_text(text)
                Path(folder, name).chmod(0o440)
            # The directory gets the mode with which Kubernetes creates it.
            control = Path(folder, "run")
            control.mkdir()
            control.chmod(0o777)
            places = {
                "/etc/gpumon": folder,
                "/run/gpumon": str(control),
                "127.0.0.1:9123": "127.0.0.1:0",
                "0.0.0.0:9124": "127.0.0.1:0",
            }
            arguments = container["args"]
            for there, here in places.items():
                arguments = [argument.replace(there, here) for argument in arguments]
            command = [find_program(), *arguments]
            with subprocess.Popen(
                command,
                env=os.environ | fake_nvml_variables(folder, "gpus = 2\n"),
                stderr=subprocess.PIPE,
                text=True,
            ) as server:
                try:
                    lines = []
                    while not (
                        found := re.search(
                            r"serving only metrics at https://[^:]+:(\d+)/", "".join(lines)
                        )
                    ):
                        lines.append(server.stderr.readline())
                        self.assertTrue(lines[-1], f"the server has ended: {lines}")
                    name, token = (
                        monitor["tlsConfig"]["serverName"],
                        secret[monitor["authorization"]["credentials"]["key"]],
                    )
                    url = f"https://{name}:{found.group(1)}"
                    curl = [
                        "curl",
                        "--silent",
                        "--fail",
                        "--noproxy",
                        "*",
                        "--cacert",
                        f"{folder}/ca.crt",
                    ]
                    curl += ["--resolve", f"{name}:{found.group(1)}:127.0.0.1"]
                    self.assertIn(
                        "gpumon_collector_up",
                        run_command(
                            *curl, "-H", f"Authorization: Bearer {token}", f"{url}{monitor['path']}"
                        ),
                    )
                    # The kubelet's requests have no token, so the probe must succeed without one.
                    run_command(*curl, f"{url}{container['livenessProbe']['httpGet']['path']}")
                    self.assertNotEqual(
                        subprocess.run(
                            [*curl, f"{url}/metrics"], capture_output=True, check=False
                        ).returncode,
                        0,
                    )
                    ready = container["readinessProbe"]["exec"]["command"][1:]
                    run_command(
                        find_program(),
                        *ready,
                        env=os.environ | {"GPUMON_CONTROL": f"{control}/gpumon.sock"},
                    )
                finally:
                    server.kill()


class OpenTelemetry(unittest.TestCase):
    def test_opentelemetry_names_and_units_follow_semantic_conventions(self):
        from opentelemetry.semconv._incubating.metrics import hw_metrics

        text = Path(hw_metrics.__file__).read_text()
        units = dict(re.findall(r'Final = "(hw\.[\w.]+)"\n"""\n.*?Unit: (\S+)\n', text, re.DOTALL))
        statements = [
            statement
            for group in transform_statements("transform/names")
            for statement in group["statements"]
        ]
        to_units = [
            re.fullmatch(
                r'set\(unit, "(.+)"\) where (?:IsMatch\(name, "(.+)"\)|name == "(.+)")', line
            )
            for line in statements
        ]
        found = opentelemetry_names()
        self.assertGreater(len(found), 15)
        for source, name in found:
            self.assertIn(name, units)
            told = [
                it[1]
                for it in to_units
                if it and (it[3] == source or (it[2] and re.search(it[2], source)))
            ]
            self.assertEqual(told, [units[name]], source)

    def test_every_component_of_opentelemetry_pipeline_is_configured(self):
        settings = read_collector()
        (pipeline,) = settings["service"]["pipelines"].values()
        for kind, names in pipeline.items():
            self.assertEqual(sorted(names), sorted(settings[kind]), kind)


class Debian(unittest.TestCase):
    def test_package_purge_deletes_history_but_removal_keeps_it(self):
        with tempfile.TemporaryDirectory() as root:
            history = Path(root, "var/lib/private/gpumon/history.db")
            history.parent.mkdir(parents=True)
            history.write_text("ana")
            other = Path(root, "var/lib/gpumon-targets")
            other.mkdir()
            link = Path(root, "var/lib/gpumon")
            link.symlink_to("private/gpumon")
            script = DEPLOY / "debian/postrm"
            for action, is_kept in [
                ("remove", True),
                ("upgrade", True),
                ("purge", False),
                ("purge", False),
            ]:
                run_command(
                    "sh", script, action, env={"PATH": os.environ["PATH"], "DPKG_ROOT": root}
                )
                self.assertEqual((history.exists(), link.is_symlink()), (is_kept, is_kept), action)
            self.assertTrue(other.exists())
            # cargo-deb replaces this line by the commands for systemd.
            self.assertIn("\n#DEBHELPER#\n", script.read_text())


class Services(unittest.TestCase):
    #: The settings in which the two services may differ. The main service reads GPUs and the kernel
    #: log, and accepts connections. The other service only queries Slurm.
    OWN = (
        "AmbientCapabilities",
        "CapabilityBoundingSet",
        "DevicePolicy",
        "DeviceAllow",
        "RestrictAddressFamilies",
    )
    HARDENING = (
        "Lock",
        "Memory",
        "NoNew",
        "Private",
        "Protect",
        "Remove",
        "Restrict",
        "SystemCall",
    )

    def service_settings(self, unit: str) -> set[str]:
        lines = (DEPLOY / unit).read_text().split("[Service]")[1].splitlines()
        return {line for line in lines if "=" in line and not line.startswith("#")}

    def test_targets_service_has_hardening_of_main_service(self):
        main, targets = (
            self.service_settings(unit)
            for unit in ("systemd/gpumon.service", "slurm/gpumon-targets.service")
        )
        expected = {
            line
            for line in main
            if line.startswith(self.HARDENING) and not line.startswith(self.OWN)
        }
        self.assertGreater(len(expected), 15)
        self.assertEqual(expected - targets, set())
        self.assertLessEqual(
            {"DynamicUser=yes", "CapabilityBoundingSet=", "PrivateDevices=yes"}, targets
        )


class JupyterHub(unittest.TestCase):
    FILE = DEPLOY / "jupyterhub/jupyterhub_config.py"
    HUB = ROOT / "target/jupyter-hub/bin/python"
    KNOWN = (
        "import sys; from jupyterhub.app import JupyterHub; from jupyterhub.spawner import Spawner;"
        "hub = JupyterHub(); hub.load_config_file(sys.argv[1]);"
        "unknown = set(hub.config.Spawner) - set(Spawner.class_traits(config=True));"
        "sys.exit(f'settings that Spawner does not have: {unknown}' if unknown else 0)"
    )

    def test_traitlets_accepts_jupyterhub_config(self):
        from traitlets.config import Configurable
        from traitlets.config.loader import PyFileConfigLoader
        from traitlets.traitlets import Dict, List

        class Spawner(Configurable):
            environment = Dict().tag(config=True)
            args = List().tag(config=True)

        spawner = Spawner(config=PyFileConfigLoader(str(self.FILE)).load_config())
        self.assertIn("GPUMON_ALERTS", spawner.environment)
        self.assertEqual(len(spawner.args), 3)
        if self.HUB.exists():
            run_command(self.HUB, "-c", self.KNOWN, self.FILE)


def find_changed_paths(told, known, place="") -> Iterator[str]:
    """Yield the paths of values in which a model differs from the original values."""
    if isinstance(told, dict):
        for key, value in told.items():
            yield from find_changed_paths(
                value, known.get(key) if isinstance(known, dict) else None, f"{place}.{key}"
            )
    elif isinstance(told, list):
        for at, value in enumerate(told):
            yield from find_changed_paths(
                value,
                known[at] if isinstance(known, list) and at < len(known) else None,
                f"{place}[{at}]",
            )
    elif told != known:
        yield place


def read_collector() -> dict:
    return yaml.safe_load((DEPLOY / "otel/collector.yaml").read_text())


def transform_statements(processor: str) -> list[dict]:
    return read_collector()["processors"][processor]["metric_statements"]


def opentelemetry_names() -> list[tuple[str, str]]:
    """Return pairs of gpumon's metric names and the names to which OpenTelemetry's transform
    changes them.
    """
    statements = [
        line for group in transform_statements("transform/names") for line in group["statements"]
    ]
    found = [re.fullmatch(r'set\(name, "(.+)"\) where name == "(.+)"', line) for line in statements]
    return [(it[2], it[1]) for it in found if it]


def load_module(path: Path):
    """Load a module whose name is not unique."""
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def read_files(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


if __name__ == "__main__":
    unittest.main()
