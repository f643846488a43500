//! The endpoints `POST /api/v1/pause` and `POST /api/v1/resume`, which make the collector release
//! the GPUs and read them again.

use std::time::Duration;

use axum::{
    Extension, Json,
    extract::{Query, State, rejection::QueryRejection},
    http::StatusCode,
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::timeout;

use crate::{
    app::AppState,
    audit,
    auth::Client,
    frame::CollectorStatus,
    query::check_query,
    refusal::{Refusal, bad_request},
    supervisor::PauseControl,
};

/// The time limit for pausing or resuming. A collector has a second to exit, and the supervisor may
/// still be handling the end of a previous collector.
const ORDER_TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum length of a pause in milliseconds. For a longer pause, clients should request one
/// without an end.
const MAX_PAUSE_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// The query of `POST /api/v1/pause`: the length of the pause.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PauseQuery {
    /// The length of the pause in milliseconds. By default, the pause lasts until it is resumed.
    #[schemars(range(min = 1, max = MAX_PAUSE_MS))]
    for_ms: Option<u64>,
}

type PauseResponse = Result<Json<CollectorStatus>, Refusal>;

/// Pauses the collector, and returns its state after the pause has started.
pub(crate) async fn pause(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    query: Result<Query<PauseQuery>, QueryRejection>,
) -> PauseResponse {
    let hint = format!("?for_ms= with 1 to {MAX_PAUSE_MS}, or no parameter");
    let PauseQuery { for_ms } = check_query(query, &hint)?;
    if for_ms.is_some_and(|ms| !(1..=MAX_PAUSE_MS).contains(&ms)) {
        return Err(bad_request(format!("for_ms is out of range; use {hint}")));
    }
    if let Some(socket) = app.hub.joined_socket() {
        let message = format!(
            "this server reads the GPUs through the server at {}: pause that server, as root, with \
             `gpumon pause`\n",
            socket.display()
        );
        return Err((StatusCode::CONFLICT, message));
    }
    let number = app.control.request_pause(for_ms.map(Duration::from_millis));
    let answer = respond_after_command(&app, number).await?;
    let time = for_ms.map_or_else(String::new, |ms| format!(" for {} s", ms.div_ceil(1000)));
    audit::log_action(&client, &format!("paused monitoring{time}")).await;
    Ok(answer)
}

pub(crate) async fn resume(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
) -> PauseResponse {
    let number = app.control.request_resume();
    let answer = respond_after_command(&app, number).await?;
    audit::log_action(&client, "resumed monitoring").await;
    Ok(answer)
}

async fn respond_after_command(app: &AppState, number: u64) -> PauseResponse {
    if !wait_or_withdraw_command(&app.control, number).await {
        let message =
            "the collector's supervisor does not respond; restart the server\n".to_owned();
        return Err((StatusCode::SERVICE_UNAVAILABLE, message));
    }
    Ok(Json(app.hub.collector_status()))
}

/// Waits until a command has been carried out, and returns `true`. If this takes too long,
/// withdraws the command and returns `false`, unless the command was carried out in the meantime.
/// If the client disconnects, the command is withdrawn as well, so that it is not carried out when
/// nobody is waiting.
async fn wait_or_withdraw_command(control: &PauseControl, number: u64) -> bool {
    let order = PendingOrder { control, number };
    timeout(ORDER_TIMEOUT, control.wait_for_command(number))
        .await
        .is_ok()
        || !order.withdraw()
}

/// A command to pause or resume, which is withdrawn when this value is dropped, unless it has been
/// carried out.
struct PendingOrder<'a> {
    control: &'a PauseControl,
    number: u64,
}

impl PendingOrder<'_> {
    fn withdraw(&self) -> bool {
        self.control.withdraw_command(self.number)
    }
}

impl Drop for PendingOrder<'_> {
    fn drop(&mut self) {
        self.withdraw();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn pause_is_withdrawn_if_its_request_is_canceled() {
        let control = PauseControl::new();
        let is_paused = || control.subscribe_commands().borrow().pause.is_some();
        assert!(
            wait_or_withdraw_command(&control, control.request_pause(None))
                .now_or_never()
                .is_none()
        );
        assert!(!is_paused());
        let number = control.request_pause(None);
        control.mark_done(*control.subscribe_commands().borrow());
        assert!(wait_or_withdraw_command(&control, number).await && is_paused());
    }
}
