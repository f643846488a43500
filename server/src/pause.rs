//! The endpoints `POST /api/v1/pause` and `/api/v1/resume`, with which the collector releases the
//! GPUs and reads them again.

use std::time::Duration;

use axum::{
    Extension, Json,
    extract::{Query, State, rejection::QueryRejection},
    http::StatusCode,
};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::timeout;

use crate::{app::AppState, audit, auth::Client, control::Control, frame::CollectorStatus};

/// The time limit for carrying out a request. A collector gets a second to end, and the supervisor
/// may still be handling the end of the previous one.
const PATIENCE: Duration = Duration::from_secs(5);

/// The maximum length of a pause in milliseconds. A longer pause should be one without an end.
const LONGEST_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// The query of `POST /api/v1/pause`: its length.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PauseQuery {
    /// The length of the pause in milliseconds; by default, it lasts until it is resumed.
    #[schemars(range(min = 1, max = LONGEST_MS))]
    for_ms: Option<u64>,
}

type Answer = Result<Json<CollectorStatus>, (StatusCode, String)>;

/// Pauses the collector, and returns its state once it has ended.
pub(crate) async fn pause(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    query: Result<Query<PauseQuery>, QueryRejection>,
) -> Answer {
    let bad = |why: String| {
        (
            StatusCode::BAD_REQUEST,
            format!("{why}; ask for ?for_ms= 1 to {LONGEST_MS}, or nothing\n"),
        )
    };
    let Query(PauseQuery { for_ms }) = query.map_err(|error| bad(error.body_text()))?;
    if for_ms.is_some_and(|ms| !(1..=LONGEST_MS).contains(&ms)) {
        return Err(bad("no such pause".to_owned()));
    }
    if let Some(socket) = app.hub.joined() {
        let message = format!(
            "this server reads the GPUs through the one at {}: pause that one, as root, with `gpumon pause`\n",
            socket.display()
        );
        return Err((StatusCode::CONFLICT, message));
    }
    let number = app.control.pause(for_ms.map(Duration::from_millis));
    let answer = answer(&app, number).await?;
    let time = for_ms.map_or_else(String::new, |ms| format!(" for {} s", ms.div_ceil(1000)));
    audit::note(&client, &format!("paused monitoring{time}")).await;
    Ok(answer)
}

pub(crate) async fn resume(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
) -> Answer {
    let number = app.control.resume();
    let answer = answer(&app, number).await?;
    audit::note(&client, "resumed monitoring").await;
    Ok(answer)
}

async fn answer(app: &AppState, number: u64) -> Answer {
    if !wait_done(&app.control, number).await {
        let message = "the collector's supervisor does not answer; restart the server\n".to_owned();
        return Err((StatusCode::SERVICE_UNAVAILABLE, message));
    }
    Ok(Json(app.hub.collector()))
}

/// Waits for an order, and returns whether it was carried out. Otherwise the order is withdrawn,
/// even if the client disconnects: it must not be carried out when nobody waits for it.
async fn wait_done(control: &Control, number: u64) -> bool {
    let order = PendingOrder { control, number };
    timeout(PATIENCE, control.wait_done(number)).await.is_ok() || !order.withdraw()
}

/// An order that is withdrawn when this is dropped, unless it has been carried out.
struct PendingOrder<'a> {
    control: &'a Control,
    number: u64,
}

impl PendingOrder<'_> {
    fn withdraw(&self) -> bool {
        self.control.withdraw(self.number)
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
    async fn a_pause_whose_client_hangs_up_does_not_happen_later() {
        let control = Control::new();
        let is_paused = || control.orders().borrow().pause.is_some();
        assert!(
            wait_done(&control, control.pause(None))
                .now_or_never()
                .is_none()
        );
        assert!(!is_paused());
        let number = control.pause(None);
        control.mark_done(*control.orders().borrow());
        assert!(wait_done(&control, number).await && is_paused());
    }
}
