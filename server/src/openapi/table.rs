//! The table of all operations: method, path, description, parameters and responses.

use gpumon_fleet::{
    discovery::TargetGroup,
    model::{Fleet, FleetEvents, FleetHistory, FleetUsage},
};
use gpumon_history::{
    jobs::JobList,
    span::{HistoryQuery, HistorySpan},
};
use gpumon_probe::{
    model::{Cell, Cost, Event, Record, StoredCost},
    usage::Usage,
};
use gpumon_workload::protocol::Job;
use serde_json::{Value, json};

use super::operation::{Operation, TypeSchemas, describe_operation, describe_refusals};
use crate::{
    alerts::{AlertStatus, routes::Silence},
    auth::routes::{SessionState, SignIn},
    client_events::NewMark,
    fleet::{
        hosts::routes::TargetsQuery,
        routes::{FleetHistoryQuery, FleetQuery, NodeQuery, RangeQuery},
    },
    frame::{ClientFrame, CollectorStatus, ServerFrame, Snapshot},
    metrics::{self, MetricsQuery},
    pause::PauseQuery,
    replay::{ReplayOrder, ReplayPosition},
    runs::{
        Catalogue, GPUMON_HEADER,
        registry::{MAX_RUN_S, TIME_KEYS},
        routes::{self, RunList, Started},
        state::{RunDetails, RunState},
    },
    snapshot::SnapshotQuery,
    stream::StreamQuery,
    usage::{CostQuery, JobsQuery, KernelCost, UsageQuery},
};

const NODE_HELP: &str = "The name of a node, as in `/api/v1/fleet`.";

pub(super) fn list_operations(kinds: &mut TypeSchemas) -> Vec<Operation> {
    vec![
        describe_operation("GET", "/", "The web page.").with_text_response(200, "text/html").with_refusals([404]),
        describe_operation("GET", "/{*path}", "Files of the web page.")
            .with_path_parameter("path", "The name of the file.")
            .with_text_response(200, "*/*")
            .with_refusals([404]),
        describe_operation("GET", "/api/v1/openapi.json", "This description of the API, as OpenAPI 3.1.").with_any_json_response(200),
        describe_operation("GET", "/api/v1/snapshot", "The current state. `?history_s=60` adds a minute of \
                                              history.")
            .with_query::<SnapshotQuery>(kinds)
            .with_json_response::<Snapshot>(200, kinds),
        describe_operation("GET", "/api/v1/history", "The history of a span of time, with as many points \
                                             as fit into a chart.")
            .with_query::<HistoryQuery>(kinds)
            .with_json_response::<HistorySpan>(200, kinds),
        describe_operation(
            "GET",
            "/api/v1/stream",
            "WebSocket. The server sends frames of the type `ServerFrame`, first a `hello`; the \
             client can send frames of the type `ClientFrame`. With `?encoding=deflate-raw`, \
             frames are sent as binary messages that together are one raw deflate stream (RFC \
             1951) of lines, one frame per line; no message refers to data of earlier ones.",
        )
        .with_query::<StreamQuery>(kinds)
        .with_empty_response(101),
        describe_operation(
            "GET",
            "/api/v1/usage",
            "Energy and GPU time by owner since the server's start, or in a span of time. The \
             paths of notebooks are hidden from clients that are not allowed to see the \
             command lines of other users.",
        )
        .with_query::<UsageQuery>(kinds)
        .with_json_response::<Usage>(200, kinds),
        describe_operation("GET", "/api/v1/answers", "The driver's responses for the newest \
         sample, as used by `gpumon smi`.")
            .with_any_json_response(200)
            .mark_internal()
            .with_refusals([409]),
        describe_operation("GET", "/api/v1/catalogue", "The workloads that can be run.").with_json_response::<Catalogue>(200, kinds),
        describe_operation("GET", "/api/v1/runs", "All known runs, the newest first.").with_json_response::<RunList>(200, kinds),
        describe_operation("POST", "/api/v1/runs", "Starts a run.")
            .with_body::<Job>(&json!({ "kind": "bench", "ids": ["copy"], "quick": true }), kinds)
            .require_run_permission()
            .with_json_response::<Started>(202, kinds)
            .with_refusals([409]),
        describe_operation("GET", "/api/v1/runs/{run}", "One run with all its results.")
            .with_path_parameter("run", "The name of the run.")
            .with_json_response::<RunDetails>(200, kinds)
            .with_refusals([404]),
        describe_operation("DELETE", "/api/v1/runs/{run}", "Cancels a run.")
            .with_path_parameter("run", "The name of the run.")
            .require_run_permission()
            .with_json_response::<RunState>(200, kinds)
            .with_refusals([404, 409]),
        describe_operation(
            "POST",
            "/api/v1/runs/announced",
            "Reports a run that was started in a terminal. The format of the request is internal.",
        )
        .with_required_header(routes::RUN_NAME_HEADER, "The name of the run.", &format!("^[A-Za-z0-9_-]{{1,{}}}$", routes::MAX_RUN_NAME_BYTES))
        .with_line_body()
        .require_socket()
        .with_plain_response(200)
        .mark_internal()
        .with_refusals([409, 503]),
        describe_operation(
            "POST",
            "/api/v1/marks",
            "Marks a moment on the charts of every client. At most 20 marks are accepted at once, \
             then one per second.",
        )
        .with_body::<NewMark>(&json!({ "text": "epoch 3" }), kinds)
        .require_run_permission()
        .with_json_response::<Event>(201, kinds)
        .with_refusals([409, 429]),
        describe_operation(
            "POST",
            "/api/v1/cells",
            "Reports the GPU use of one execution of a notebook cell. The JupyterLab extension \
             sends it when the execution has ended. The event in the response is also sent to \
             every client and stored in the history. At most 20 cells are accepted at once, \
             then one per second.",
        )
        .with_body_of_response_type::<Cell>(
            &json!({
                "notebook": "train.ipynb", "kernel_id": "5f3a", "cell_id": "1b", "execution_count": 3,
                "started_ms": 1_795_487_490_000_u64, "ended_ms": 1_795_487_499_000_u64, "gpus": [0],
                "gpu_ms": 8000, "peak_bytes": 1 << 30, "change_bytes": 0, "joules": 2500, "shared": false,
            }),
            kinds,
        )
        .require_run_permission()
        .with_json_response::<Event>(201, kinds)
        .with_refusals([409, 429]),
        describe_operation(
            "GET",
            "/api/v1/cost",
            "The cost of a notebook's kernel and of everything that the kernel started, within \
             a span of time. A kernel of another user is reported as a kernel that uses no \
             GPU. The start and the end of the span are accurate to a fraction of a second if \
             a client of the stream had requested traces, and to the server's sampling \
             interval otherwise.",
        )
        .with_query::<CostQuery>(kinds)
        .with_json_response::<KernelCost>(200, kinds),
        describe_operation(
            "GET",
            "/api/v1/jobs",
            "The batch jobs, pods, containers, notebooks and services on each GPU, with their \
             times.",
        )
        .with_query::<JobsQuery>(kinds)
        .with_json_response::<JobList>(200, kinds),
        describe_operation(
            "GET",
            "/api/v1/fleet",
            "The current state of all GPUs of a fleet. This route and those below return 404 on a \
             server that shows no fleet.",
        )
        .with_query::<FleetQuery>(kinds)
        .with_json_response::<Fleet>(200, kinds)
        .with_refusals([404]),
        describe_operation("GET", "/api/v1/fleet/node", "All GPUs of one node, even if the fleet lists \
                                                only nodes.")
            .with_query::<NodeQuery>(kinds)
            .with_json_response::<Fleet>(200, kinds)
            .with_refusals([404]),
        describe_operation("GET", "/api/v1/fleet/usage", "The usage of a fleet by owner.")
            .with_query::<RangeQuery>(kinds)
            .with_json_response::<FleetUsage>(200, kinds)
            .with_refusals([404]),
        describe_operation("GET", "/api/v1/fleet/events", "Xids, lost GPUs and lost nodes of a \
                                                           fleet.")
            .with_query::<RangeQuery>(kinds)
            .with_json_response::<FleetEvents>(200, kinds)
            .with_refusals([404]),
        describe_operation("GET", "/api/v1/fleet/history", "The history of a fleet or of one of its nodes.")
            .with_query::<FleetHistoryQuery>(kinds)
            .with_json_response::<FleetHistory>(200, kinds)
            .with_refusals([404]),
        describe_operation("GET", "/api/v1/fleet/targets", "The hosts of a fleet, in the format of \
                                                   `http_sd_configs` of Prometheus.")
            .with_query::<TargetsQuery>(kinds)
            .with_json_response::<Vec<TargetGroup>>(200, kinds)
            .with_refusals([404]),
        describe_operation("GET", "/nodes/{node}", "Redirects to the page of a node.").with_path_parameter("node", NODE_HELP).with_empty_response(308),
        describe_operation("GET", "/nodes/{node}/", "The web page for one node of a fleet.")
            .with_path_parameter("node", NODE_HELP)
            .with_text_response(200, "text/html")
            .with_refusals([404, 502]),
        describe_operation(
            "GET",
            "/nodes/{node}/{*path}",
            "The response of a fleet's node to the same path below `/api/v1/`. Other paths are \
             files of this server's web page. The request uses the viewer's session at the node, \
             or else the token of `--node-token-file`. Returns 404 for paths that are not \
             forwarded.",
        )
        .with_path_parameter("node", NODE_HELP)
        .with_path_parameter("path", "The path on the node, such as `api/v1/snapshot`.")
        .with_any_json_response(200)
        .with_text_response(200, "*/*")
        .with_refusals([404, 502, 504]),
        describe_operation(
            "POST",
            "/nodes/{node}/{*path}",
            "Signs in to a node of a fleet, at `api/v1/session`. No other changes are forwarded.",
        )
        .with_path_parameter("node", NODE_HELP)
        .with_path_parameter("path", "`api/v1/session`.")
        .with_body::<SignIn>(&json!({ "token": "4f0c…" }), kinds)
        .require_gpumon_header()
        .with_any_json_response(200)
        .with_refusals([404, 409, 502, 504]),
        describe_operation("DELETE", "/nodes/{node}/{*path}", "Signs out of a node of a fleet, \
         at `api/v1/session`.")
            .with_path_parameter("node", NODE_HELP)
            .with_path_parameter("path", "`api/v1/session`.")
            .require_gpumon_header()
            .with_empty_response(204)
            .with_refusals([404, 502, 504]),
        describe_operation("GET", "/nodes/{node}/api/v1/stream", "WebSocket. The stream of a node of a \
                                                         fleet, forwarded by this server.")
            .with_path_parameter("node", NODE_HELP)
            .with_query::<StreamQuery>(kinds)
            .with_empty_response(101)
            .with_refusals([404, 502, 504]),
        describe_operation("GET", "/api/v1/alerts", "All alert rules and receivers with their state.")
            .with_json_response::<AlertStatus>(200, kinds),
        describe_operation("POST", "/api/v1/alerts/silence", "Silences an alert rule for a while.")
            .with_body::<Silence>(&json!({ "rule": "GPU is hot", "for_ms": 7_200_000 }), kinds)
            .require_socket()
            .with_json_response::<AlertStatus>(200, kinds)
            .with_refusals([404, 409]),
        describe_operation(
            "GET",
            "/api/v1/replay",
            "The position in the recording that `gpumon replay --serve` plays. Returns 404 on all \
             other servers.",
        )
        .with_json_response::<ReplayPosition>(200, kinds)
        .with_refusals([404]),
        describe_operation("POST", "/api/v1/replay", "Controls the replay. Returns the new position.")
            .with_body::<ReplayOrder>(&json!({ "speed": 10 }), kinds)
            .require_run_permission()
            .with_json_response::<ReplayPosition>(200, kinds)
            .with_refusals([404]),
        describe_operation("POST", "/api/v1/pause", "Pauses monitoring and releases the GPUs.")
            .with_query::<PauseQuery>(kinds)
            .require_socket()
            .with_json_response::<CollectorStatus>(200, kinds)
            .with_refusals([409]),
        describe_operation("POST", "/api/v1/resume", "Resumes monitoring.")
            .require_socket()
            .with_json_response::<CollectorStatus>(200, kinds)
            .with_refusals([409]),
        describe_operation("GET", "/api/v1/session", "The signed-in user, and the available ways to sign \
                                             in.")
            .with_json_response::<SessionState>(200, kinds)
            .with_json_response::<SessionState>(401, kinds),
        describe_operation(
            "POST",
            "/api/v1/session",
            "Signs in. The response sets a cookie for 30 days, which becomes invalid earlier if \
             the server stops, or if the token or password becomes invalid.",
        )
        .with_body::<SignIn>(&json!({ "token": "4f0c…" }), kinds)
        .require_gpumon_header()
        .with_json_response::<SessionState>(200, kinds)
        .with_refusals([409]),
        describe_operation("DELETE", "/api/v1/session", "Signs out.").require_gpumon_header().with_empty_response(204),
        metrics_operation("/metrics", "Metrics for Prometheus.").with_query::<MetricsQuery>(kinds),
        metrics_operation("/metrics/dcgm", "The same as `/metrics?format=dcgm`."),
        metrics_operation("/metrics/dcgm-4.9", "The same as `/metrics?format=dcgm-4.9`."),
        describe_operation("GET", "/healthz", "Returns 200 while the server is running.").with_plain_response(200),
        describe_operation("GET", "/readyz", "Returns 200 while samples are fresh and a GPU responds or \
                                     sleeps, otherwise 503 with the reason.").with_plain_response(200),
    ]
}

/// Creates an operation that returns metrics. The `Accept` header selects the format.
fn metrics_operation(path: &'static str, text: &str) -> Operation {
    let kinds = metrics::content_types().into_iter();
    kinds
        .fold(describe_operation("GET", path, text), |operation, kind| {
            operation.with_text_response(200, kind)
        })
        .with_refusals([409])
}

/// Returns the whole OpenAPI document.
pub(super) fn build_document() -> Value {
    let mut types = TypeSchemas::new();
    let mut paths = json!({});
    for operation in list_operations(&mut types) {
        let (path, method, described) = operation.into_description();
        paths[path][method] = described;
    }
    // The frames of the stream have types that no route uses.
    types.response_schema::<ServerFrame>();
    types.response_schema::<ClientFrame>();
    // The following types are used by `gpumon run`, the Python package, notebooks and `gpumon
    // collect`.
    types.response_schema::<Cost>();
    types.response_schema::<StoredCost>();
    types.response_schema::<Record>();
    let mut schemas = Value::Object(types.into_schemas());
    let jobs = schemas["RunJob"]["oneOf"]
        .as_array_mut()
        .expect("`RunJob` is a list of variants");
    for job in jobs
        .iter_mut()
        .filter_map(|job| job["properties"].as_object_mut())
    {
        for (_, seconds) in job
            .iter_mut()
            .filter(|(key, _)| TIME_KEYS.contains(&key.as_str()))
        {
            seconds["minimum"] = 0.into();
            seconds["maximum"] = MAX_RUN_S.into();
        }
    }
    json!({
        "openapi": "3.1.1",
        "info": {
            "title": "gpumon",
            "version": "1",
            "summary": "The API of `gpumon serve`, on a port (loopback unless configured) and on \
                        unix sockets.",
            "description": "Times ending in `_ms` are milliseconds since 1970-01-01 UTC. Keys may \
                            be added in any version; clients must ignore keys that they do not \
                            know.",
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
                    "name": GPUMON_HEADER,
                    "description": "`X-Gpumon: run`, which no page of another origin can send.",
                },
                "token": { "type": "http", "scheme": "bearer", "description": "A token from the \
                 token file." },
                "password": { "type": "http", "scheme": "basic", "description": "A user from \
                 the web configuration, with the user's password." },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "gpumon-session",
                    "description": "The cookie that signing in sets. Its name contains the port \
                     and, if the server uses TLS, begins with `__Host-`.",
                },
            },
            "responses": describe_refusals([400, 401, 403, 404, 408, 409, 413, 429, 502, 503, 504].into_iter()),
            "schemas": schemas,
        },
    })
}
