//! `GET /api/v1/jobs`: which jobs were on which GPUs, from when to when.

use axum::{
    Extension,
    extract::{Query, State, rejection::QueryRejection},
    http::{HeaderMap, StatusCode},
    response::Response,
};
use serde::Deserialize;

use crate::{
    app::AppState,
    peer::Peer,
    respond::{JSON, Resource, respond, to_json},
    view::View,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobsQuery {
    /// All of them, where it is left out.
    id: Option<String>,
}

/// From memory and disk: it never waits for the driver.
pub(crate) async fn jobs(
    State(app): State<AppState>,
    Extension(peer): Extension<Peer>,
    query: Result<Query<JobsQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, (StatusCode, String)> {
    let Query(JobsQuery { id }) =
        query.map_err(|error| (StatusCode::BAD_REQUEST, format!("{}; ask for id, or nothing\n", error.body_text())))?;
    let view = View::of(peer).await;
    let subject = Resource::Jobs { id: id.clone() };
    let write = move |hub: &crate::hub::Hub| to_json(&view.jobs(hub.jobs(id.as_deref())));
    Ok(respond(&app, &headers, peer.who(), view, subject, JSON, write).await)
}
