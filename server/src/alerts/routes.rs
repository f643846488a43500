//! The endpoints `GET /api/v1/alerts` and `POST /api/v1/alerts/silence`.

use axum::{
    Extension, Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::StatusCode,
    middleware,
    routing::{get, post},
};
use gpumon_probe::model::now_ms;
use schemars::JsonSchema;
use serde::Deserialize;

use super::AlertStatus;
use crate::{
    app::AppState,
    audit,
    auth::Client,
    peer,
    refusal::{Refusal, bad_request},
    view::View,
};

/// The maximum size of a request in bytes, which allows for escaped characters in names.
const MAX_BODY_BYTES: usize = 4096;
/// The maximum length of a silence. Longer silences belong in the alert file.
const MAX_SILENCE_MS: u64 = 30 * 24 * 60 * 60 * 1000;

/// A request to silence a rule for some time.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Silence {
    /// The name of the rule.
    rule: String,
    /// The length of the silence in milliseconds; 0 ends it.
    #[schemars(range(max = MAX_SILENCE_MS))]
    for_ms: u64,
}

pub(crate) fn build_router() -> Router<AppState> {
    Router::new()
        .route(
            "/api/v1/alerts/silence",
            post(post_silence).route_layer(middleware::from_fn(peer::require_change_permission)),
        )
        .route_layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .route("/api/v1/alerts", get(get_status))
}

async fn get_status(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
) -> Json<AlertStatus> {
    let view = View::for_client(&client, app.show_processes).await;
    let mut status = app.alerts.status(now_ms());
    for rule in &mut status.rules {
        let hidden = rule
            .active
            .iter_mut()
            .filter(|place| view.hides_alert_text(place.names_processes));
        hidden.for_each(|place| place.text.clone_from(&rule.text));
    }
    Json(status)
}

/// Silences a rule, and returns the state of all rules.
async fn post_silence(
    State(app): State<AppState>,
    Extension(client): Extension<Client>,
    body: Bytes,
) -> Result<Json<AlertStatus>, Refusal> {
    let bad = |why: String| {
        bad_request(format!(
            "{why}; send {{\"rule\":\"NAME\",\"for_ms\":7200000}}, where for_ms is at most \
             {MAX_SILENCE_MS}, or 0 to end the silence"
        ))
    };
    let Silence { rule, for_ms } =
        serde_json::from_slice(&body).map_err(|error| bad(error.to_string()))?;
    if for_ms > MAX_SILENCE_MS {
        return Err(bad(
            "a silence can last at most 30 days; put a longer one into the alert file".to_owned(),
        ));
    }
    let now_ms = now_ms();
    if !app
        .alerts
        .silence_rule(&rule, (for_ms > 0).then(|| now_ms + for_ms))
    {
        let known: Vec<String> = app
            .alerts
            .status(now_ms)
            .rules
            .into_iter()
            .map(|rule| rule.name)
            .collect();
        let cure = match known.as_slice() {
            [] => "this server has no alert rules: start it with --alerts FILE".to_owned(),
            known => format!("use one of {}", known.join(", ")),
        };
        return Err((
            StatusCode::NOT_FOUND,
            format!("no alert rule is named '{rule}'; {cure}\n"),
        ));
    }
    let time = if for_ms == 0 {
        "no more".to_owned()
    } else {
        format!("for {} s", for_ms.div_ceil(1000))
    };
    audit::log_action(&client, &format!("silenced the rule {rule} {time}")).await;
    app.alerts.evaluate_rules(now_ms);
    Ok(Json(app.alerts.status(now_ms)))
}
