//! The table of all operations: method, path, description, parameters and responses.

use gpumon_fleet::{
    discovery::TargetGroup,
    model::{Fleet, FleetEvents, FleetHistory, FleetUsage},
};
use gpumon_history::{jobs::JobList, plan::HistoryQuery, span::HistorySpan};
use gpumon_probe::{
    model::{Cell, Cost, Event, Record, StoredCost},
    usage::Usage,
};
use gpumon_workload::protocol::Job;
use serde_json::{Value, json};

use super::{
    operation::{Operation, operation, refusals},
    types::Types,
};
use crate::{
    alerts::{AlertStatus, routes::Silence},
    auth::routes::{SessionState, SignIn},
    costs::{CostQuery, KernelCost},
    fleet::{
        hosts::targets::TargetsQuery,
        routes::{FleetHistoryQuery, FleetQuery, NodeQuery, RangeQuery},
    },
    frame::{ClientFrame, CollectorStatus, ServerFrame, Snapshot},
    jobs::JobsQuery,
    marks::NewMark,
    metrics::{self, MetricsQuery},
    pause::PauseQuery,
    replay::{Order, Position},
    runs::{
        Catalogue,
        access::HEADER,
        external_runs,
        job_request::{LONGEST_S, TIMES},
        routes::{RunList, Started},
        state::{RunDetails, RunState},
    },
    snapshot::SnapshotQuery,
    stream::StreamQuery,
    usage::UsageQuery,
};

const NODE: &str = "The name of a node, as `/api/v1/fleet` has it.";

pub(super) fn operations(types: &mut Types) -> Vec<Operation> {
    let kinds = types;
    vec![
        operation("GET", "/", "The web page.").text(200, "text/html").refuses(404),
        operation("GET", "/{*path}", "Files of the web page.")
            .names("path", "The name of the file.")
            .text(200, "*/*")
            .refuses(404),
        operation("GET", "/api/v1/openapi.json", "This description of the API, as OpenAPI 3.1.").any_json(200),
        operation("GET", "/api/v1/snapshot", "The current state. `?history_s=60` adds a minute of history.")
            .query::<SnapshotQuery>(kinds)
            .json::<Snapshot>(200, kinds),
        operation("GET", "/api/v1/history", "A span of the past, in as many points as a chart has room for.")
            .query::<HistoryQuery>(kinds)
            .json::<HistorySpan>(200, kinds),
        operation(
            "GET",
            "/api/v1/stream",
            "WebSocket. The server sends frames of the type `ServerFrame`, a `hello` first; the client may send those of \
             the type `ClientFrame`. With `?encoding=deflate-raw`, frames come as binary messages that together are one \
             raw deflate stream (RFC 1951) of lines, one frame each; a message refers to none before it.",
        )
        .query::<StreamQuery>(kinds)
        .empty(101),
        operation(
            "GET",
            "/api/v1/usage",
            "Energy and GPU time by owner since the server's start, or in a span of time. The paths of notebooks are hidden \
             from those who may not see the command lines of others.",
        )
        .query::<UsageQuery>(kinds)
        .json::<Usage>(200, kinds),
        operation("GET", "/api/v1/answers", "The driver's answers to the newest sample, for `gpumon smi`.")
            .any_json(200)
            .internal()
            .refuses(409),
        operation("GET", "/api/v1/catalogue", "The workloads that can be run.").json::<Catalogue>(200, kinds),
        operation("GET", "/api/v1/runs", "All known runs, the newest first.").json::<RunList>(200, kinds),
        operation("POST", "/api/v1/runs", "Starts a run.")
            .body::<Job>(&json!({ "kind": "bench", "ids": ["copy"], "quick": true }), kinds)
            .may_run()
            .json::<Started>(202, kinds)
            .refuses(409),
        operation("GET", "/api/v1/runs/{run}", "One run with all its results.")
            .names("run", "The name of the run.")
            .json::<RunDetails>(200, kinds)
            .refuses(404),
        operation("DELETE", "/api/v1/runs/{run}", "Cancels a run.")
            .names("run", "The name of the run.")
            .may_run()
            .json::<RunState>(200, kinds)
            .refuses(404)
            .refuses(409),
        operation(
            "POST",
            "/api/v1/runs/announced",
            "Reports a run that was started in a terminal. What is sent is internal.",
        )
        .header(external_runs::HEADER, "The name of the run.", &format!("^[A-Za-z0-9_-]{{1,{}}}$", external_runs::LONGEST_NAME))
        .lines()
        .over_socket()
        .plain(200)
        .internal()
        .refuses(409)
        .refuses(503),
        operation(
            "POST",
            "/api/v1/marks",
            "Marks a moment on the charts of every client. 20 marks may come at once, and then one per second.",
        )
        .body::<NewMark>(&json!({ "text": "epoch 3" }), kinds)
        .may_run()
        .json::<Event>(201, kinds)
        .refuses(409)
        .refuses(429),
        operation(
            "POST",
            "/api/v1/cells",
            "Tells what an execution of a notebook's cell took of the GPUs. JupyterLab's extension does when it has ended; \
             every client and the history get the event that it answers with. 20 cells may come at once, and then one per \
             second.",
        )
        .same_body::<Cell>(
            &json!({
                "notebook": "train.ipynb", "kernel_id": "5f3a", "cell_id": "1b", "execution_count": 3,
                "started_ms": 1_795_487_490_000_u64, "ended_ms": 1_795_487_499_000_u64, "gpus": [0],
                "gpu_ms": 8000, "peak_bytes": 1 << 30, "change_bytes": 0, "joules": 2500, "shared": false,
            }),
            kinds,
        )
        .may_run()
        .json::<Event>(201, kinds)
        .refuses(409)
        .refuses(429),
        operation(
            "GET",
            "/api/v1/cost",
            "The cost of a notebook's kernel in a span, with all that it has started. A kernel of \
             another user is answered as one that holds no GPU. The ends of a span are measured \
             to a fraction of a second while a client's stream has asked for traces, and to the \
             server's interval otherwise.",
        )
        .query::<CostQuery>(kinds)
        .json::<KernelCost>(200, kinds),
        operation(
            "GET",
            "/api/v1/jobs",
            "Which batch jobs, pods, containers, notebooks and services were on which GPUs, from when to when.",
        )
        .query::<JobsQuery>(kinds)
        .json::<JobList>(200, kinds),
        operation(
            "GET",
            "/api/v1/fleet",
            "All GPUs of a fleet now. 404 on a server that shows none, here and below.",
        )
        .query::<FleetQuery>(kinds)
        .json::<Fleet>(200, kinds)
        .refuses(404),
        operation("GET", "/api/v1/fleet/node", "The GPUs of one node, each of them, also where the fleet lists nodes alone.")
            .query::<NodeQuery>(kinds)
            .json::<Fleet>(200, kinds)
            .refuses(404),
        operation("GET", "/api/v1/fleet/usage", "Who used how much of a fleet.")
            .query::<RangeQuery>(kinds)
            .json::<FleetUsage>(200, kinds)
            .refuses(404),
        operation("GET", "/api/v1/fleet/events", "Xids, and GPUs and nodes that were lost.")
            .query::<RangeQuery>(kinds)
            .json::<FleetEvents>(200, kinds)
            .refuses(404),
        operation("GET", "/api/v1/fleet/history", "How a fleet, or one of its nodes, did over time.")
            .query::<FleetHistoryQuery>(kinds)
            .json::<FleetHistory>(200, kinds)
            .refuses(404),
        operation("GET", "/api/v1/fleet/targets", "The hosts of a fleet, as `http_sd_configs` of Prometheus reads them.")
            .query::<TargetsQuery>(kinds)
            .json::<Vec<TargetGroup>>(200, kinds)
            .refuses(404),
        operation("GET", "/nodes/{node}", "Redirects to the page of a node.").names("node", NODE).empty(308),
        operation("GET", "/nodes/{node}/", "The web page, on one node of a fleet.")
            .names("node", NODE)
            .text(200, "text/html")
            .refuses(404)
            .refuses(502),
        operation(
            "GET",
            "/nodes/{node}/{*path}",
            "What a node of a fleet answers to the same path below `/api/v1/`. Of this server are files of the web page. The \
             viewer's session at the node counts, or else the token of `--node-token-file`; 404 on what is not passed on.",
        )
        .names("node", NODE)
        .names("path", "As `api/v1/snapshot`.")
        .any_json(200)
        .text(200, "*/*")
        .refuses(404)
        .refuses(502)
        .refuses(504),
        operation(
            "POST",
            "/nodes/{node}/{*path}",
            "Signs in at a node of a fleet, at `api/v1/session`. Nothing else is changed there.",
        )
        .names("node", NODE)
        .names("path", "`api/v1/session`.")
        .body::<SignIn>(&json!({ "token": "4f0c…" }), kinds)
        .with_header()
        .any_json(200)
        .refuses(404)
        .refuses(409)
        .refuses(502)
        .refuses(504),
        operation("DELETE", "/nodes/{node}/{*path}", "Signs out at a node of a fleet, at `api/v1/session`.")
            .names("node", NODE)
            .names("path", "`api/v1/session`.")
            .with_header()
            .empty(204)
            .refuses(404)
            .refuses(502)
            .refuses(504),
        operation("GET", "/nodes/{node}/api/v1/stream", "WebSocket. The stream of a node of a fleet, passed on.")
            .names("node", NODE)
            .query::<StreamQuery>(kinds)
            .empty(101)
            .refuses(404)
            .refuses(502)
            .refuses(504),
        operation("GET", "/api/v1/alerts", "Every alert rule and receiver and how it is.")
            .json::<AlertStatus>(200, kinds),
        operation("POST", "/api/v1/alerts/silence", "Notifies nobody of a rule for a while.")
            .body::<Silence>(&json!({ "rule": "GPU is hot", "for_ms": 7_200_000 }), kinds)
            .over_socket()
            .json::<AlertStatus>(200, kinds)
            .refuses(404)
            .refuses(409),
        operation(
            "GET",
            "/api/v1/replay",
            "Position in the recording that `gpumon replay --serve` plays. 404 on every other server.",
        )
        .json::<Position>(200, kinds)
        .refuses(404),
        operation("POST", "/api/v1/replay", "Controls the replay. Answers with the new position.")
            .body::<Order>(&json!({ "speed": 10 }), kinds)
            .may_run()
            .json::<Position>(200, kinds)
            .refuses(404),
        operation("POST", "/api/v1/pause", "Releases the GPUs.")
            .query::<PauseQuery>(kinds)
            .over_socket()
            .json::<CollectorStatus>(200, kinds)
            .refuses(409),
        operation("POST", "/api/v1/resume", "Resumes monitoring.")
            .over_socket()
            .json::<CollectorStatus>(200, kinds)
            .refuses(409),
        operation("GET", "/api/v1/session", "Who is signed in, and the available ways to sign in.")
            .json::<SessionState>(200, kinds)
            .json::<SessionState>(401, kinds),
        operation(
            "POST",
            "/api/v1/session",
            "Signs in. The answer sets a cookie for 30 days, which ends when the server, the token or the password does.",
        )
        .body::<SignIn>(&json!({ "token": "4f0c…" }), kinds)
        .with_header()
        .json::<SessionState>(200, kinds)
        .refuses(409),
        operation("DELETE", "/api/v1/session", "Signs out.").with_header().empty(204),
        of_metrics("/metrics", "Metrics for Prometheus.").query::<MetricsQuery>(kinds),
        of_metrics("/metrics/dcgm", "The same as `/metrics?format=dcgm`."),
        of_metrics("/metrics/dcgm-4.9", "The same as `/metrics?format=dcgm-4.9`."),
        operation("GET", "/healthz", "200 while the server runs.").plain(200),
        operation("GET", "/readyz", "200 while samples are fresh and a GPU responds or sleeps, otherwise 503 with the reason.").plain(200),
    ]
}

/// Creates an operation that returns metrics in the format of the header `Accept`.
fn of_metrics(path: &'static str, text: &str) -> Operation {
    let kinds = metrics::content_types().into_iter();
    kinds
        .fold(operation("GET", path, text), |operation, kind| {
            operation.text(200, kind)
        })
        .refuses(409)
}

/// Returns the whole document. The table above is the largest part of it.
pub(super) fn document() -> Value {
    let mut types = Types::new();
    let mut paths = json!({});
    for operation in operations(&mut types) {
        let (path, method, described) = operation.described();
        paths[path][method] = described;
    }
    // These types have no route: the frames of the stream, and the records of `gpumon collect`.
    types.answer::<ServerFrame>();
    types.answer::<ClientFrame>();
    // These types are used by `gpumon run`, the Python package and notebooks.
    types.answer::<Cost>();
    types.answer::<StoredCost>();
    types.answer::<Record>();
    let mut schemas = Value::Object(types.all());
    let jobs = schemas["RunJob"]["oneOf"]
        .as_array_mut()
        .expect("jobs are told apart by their kind");
    for job in jobs
        .iter_mut()
        .filter_map(|job| job["properties"].as_object_mut())
    {
        for (_, seconds) in job
            .iter_mut()
            .filter(|(key, _)| TIMES.contains(&key.as_str()))
        {
            seconds["minimum"] = 0.into();
            seconds["maximum"] = LONGEST_S.into();
        }
    }
    json!({
        "openapi": "3.1.1",
        "info": {
            "title": "gpumon",
            "version": "1",
            "summary": "What `gpumon serve` serves, on a port (loopback unless configured) and on unix sockets.",
            "description": "Times ending in `_ms` are milliseconds since 1970-01-01 UTC. Keys may be added in any \
                            version; clients must ignore keys that they do not know.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        // The empty entry is for servers that require no sign-in.
        "security": [{}, { "token": [] }, { "password": [] }, { "session": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "header": {
                    "type": "apiKey",
                    "in": "header",
                    "name": HEADER,
                    "description": "`X-Gpumon: run`, which no page of another origin can send.",
                },
                "token": { "type": "http", "scheme": "bearer", "description": "A token of the token file." },
                "password": { "type": "http", "scheme": "basic", "description": "A user of the web configuration." },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "gpumon-session",
                    "description": "What signing in sets; the name has the port, and `__Host-` before it with TLS.",
                },
            },
            "responses": refusals([400, 401, 403, 404, 408, 409, 413, 429, 502, 503, 504].into_iter()),
            "schemas": schemas,
        },
    })
}
