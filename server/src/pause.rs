//! `POST /api/v1/pause` and `/api/v1/resume`: the collector lets go of the GPUs, and takes them up
//! again.

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

/// A collector gets a second to die, and the supervisor may be reading how the last one ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// A longer pause is meant to last until somebody ends it.
const LONGEST_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// For how long.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PauseQuery {
    /// For so many milliseconds; by default, until it is resumed.
    #[schemars(range(min = 1, max = LONGEST_MS))]
    for_ms: Option<u64>,
}

type Answer = Result<Json<CollectorStatus>, (StatusCode, String)>;

/// Answers when the collector has ended, with what the server then says about it.
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

/// Whether the order was carried out. It is taken back where it was not, also where the client
/// hangs up meanwhile: what nobody waits for must not happen later.
async fn wait_done(control: &Control, number: u64) -> bool {
    let order = PendingOrder { control, number };
    timeout(PATIENCE, control.wait_done(number)).await.is_ok() || !order.withdraw()
}

/// An order that is taken back when this is dropped, unless it has been carried out.
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
