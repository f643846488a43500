//! The endpoint `GET /api/v1/fleet/targets`, which lists the hosts as targets for Prometheus'
//! `http_sd_configs`.

use axum::{
    Json,
    extract::State,
    http::{StatusCode, Uri},
};
use gpumon_fleet::discovery::{Target, TargetGroup, group_targets};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{app::AppState, query};

/// The default port of `gpumon serve`.
const DEFAULT_PORT: u16 = 9123;

/// The query of `GET /api/v1/fleet/targets`: the port of the targets.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TargetsQuery {
    /// The port of each host; 9123 by default.
    #[schemars(range(min = 1))]
    port: Option<u16>,
}

/// Returns the hosts as the user typed them. Hosts that do not respond are included, so that
/// Prometheus reports them as down.
pub(crate) async fn get_targets(
    State(app): State<AppState>,
    uri: Uri,
) -> Result<Json<Vec<TargetGroup>>, (StatusCode, String)> {
    let bad = |why: String| {
        (
            StatusCode::BAD_REQUEST,
            format!("{why}; use port=9123, or no parameter\n"),
        )
    };
    let TargetsQuery { port } = query::parse_query(&uri).map_err(|error| bad(error.body_text()))?;
    let port = port.unwrap_or(DEFAULT_PORT);
    if port == 0 {
        return Err(bad("port is 0".to_owned()));
    }
    let hosts = app.fleet.as_ref().and_then(|fleet| fleet.hosts.as_ref()).ok_or_else(|| {
        let message =
            "this server has no list of hosts: start it with --hosts, or let Prometheus discover \
             its targets in another way\n";
        (StatusCode::NOT_FOUND, message.to_owned())
    })?;
    let targets = hosts.host_list().hosts().iter().map(|host| Target {
        host: host.address().to_owned(),
    });
    Ok(Json(group_targets(&targets.collect::<Vec<_>>(), port, &[])))
}
