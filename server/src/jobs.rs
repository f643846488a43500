//! The endpoint `GET /api/v1/jobs`: jobs, their GPUs, and the times of use.

use axum::{
    Extension,
    extract::{Query, State, rejection::QueryRejection},
    http::{HeaderMap, StatusCode},
    response::Response,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    app::AppState,
    auth::Client,
    respond::{JSON_TYPE, Resource, respond_with_resource, to_json},
    view::View,
};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobsQuery {
    /// The ID or name of a job; by default, all jobs are returned.
    id: Option<String>,
}

/// Returns jobs from memory and disk, without calling the driver.
pub(crate) async fn get_jobs(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    query: Result<Query<JobsQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, (StatusCode, String)> {
    let Query(JobsQuery { id }) = query.map_err(|error| {
        (
            StatusCode::BAD_REQUEST,
            format!("{}; use id, or no parameter\n", error.body_text()),
        )
    })?;
    let view = View::for_client(&client, app.show_processes).await;
    let of_view = view.clone();
    let subject = Resource::Jobs { id: id.clone() };
    let write =
        move |hub: &crate::hub::Hub| to_json(&of_view.filter_jobs(hub.read_jobs(id.as_deref())));
    Ok(respond_with_resource(
        &app,
        &headers,
        client.peer_key(),
        view,
        subject,
        JSON_TYPE,
        write,
    )
    .await)
}
