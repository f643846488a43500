//! `/metrics`: what is known now, for Prometheus. It is written from memory, and never waits for the driver.
//!
//! - [`text`] is the format; [`scrape`] is what may be told of which GPU.
//! - [`health`], [`fields`], [`details`] and [`processes`] are gpumon's own names, in base units.
//! - [`dcgm`] are the names of dcgm-exporter, for its dashboards.
//!
//! What is absent is left out. What a GPU showed before it hung, or a collector before it ended, is not told again.

mod dcgm;
mod details;
mod fields;
mod health;
mod processes;
mod scrape;
mod text;

use axum::{
    Extension,
    extract::{Query, State, rejection::QueryRejection},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use gpumon_probe::model::now_ms;
use serde::Deserialize;

use self::{
    scrape::Scrape,
    text::{CONTENT_TYPE, Page},
};
use crate::{
    app::AppState,
    frame::Snapshot,
    peer::Peer,
    respond::{Resource, respond},
    snapshot_parts::SnapshotParts,
    view::View,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MetricsQuery {
    #[serde(default)]
    format: Names,
}

/// Whose names.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Names {
    #[default]
    Gpumon,
    Dcgm,
}

/// `/metrics`, and `/metrics?format=dcgm`.
pub(crate) async fn metrics(
    State(app): State<AppState>,
    Extension(peer): Extension<Peer>,
    query: Result<Query<MetricsQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Response {
    match query {
        Ok(Query(MetricsQuery { format })) => answer(&app, &headers, peer, format).await,
        Err(error) => {
            let message = format!("{}; ask for /metrics or /metrics?format=dcgm\n", error.body_text());
            (StatusCode::BAD_REQUEST, message).into_response()
        }
    }
}

/// `/metrics/dcgm`, for those who cannot set a query.
pub(crate) async fn dcgm(
    State(app): State<AppState>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Response {
    answer(&app, &headers, peer, Names::Dcgm).await
}

/// The same for everybody: no command lines stand there.
async fn answer(app: &AppState, headers: &HeaderMap, peer: Peer, names: Names) -> Response {
    let with_processes = app.live.borrow().process_metrics;
    let subject = Resource::Metrics { dcgm: matches!(names, Names::Dcgm), with_processes };
    respond(app, headers, peer.who(), View::Names, subject, CONTENT_TYPE, move |hub| {
        let snapshot = hub.snapshot(&SnapshotParts::default());
        let text = match names {
            Names::Gpumon => own(&snapshot, with_processes),
            Names::Dcgm => dcgm_names(&snapshot),
        };
        text.into_bytes()
    })
    .await
}

fn own(snapshot: &Snapshot, with_processes: bool) -> String {
    let scrape = Scrape::new(snapshot, now_ms());
    let mut page = Page::default();
    health::write(&mut page, &scrape);
    fields::gpu(&mut page, &scrape);
    details::write(&mut page, &scrape);
    fields::mig(&mut page, &scrape);
    fields::host(&mut page, &scrape);
    if with_processes {
        processes::write(&mut page, &scrape);
    }
    page.into_text()
}

fn dcgm_names(snapshot: &Snapshot) -> String {
    let mut page = Page::default();
    dcgm::write(&mut page, &Scrape::new(snapshot, now_ms()));
    page.into_text()
}

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
