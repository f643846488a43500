//! The endpoints below `/api/v1/fleet`: the current state of all GPUs, usage, events, and history.

use std::convert::Infallible;

use axum::{
    Router,
    extract::{FromRequestParts, Request, State, rejection::QueryRejection},
    http::{HeaderMap, StatusCode, Uri, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
    routing::get,
};
use gpumon_fleet::{FleetError, Range, SharedFleet};
use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};

use super::{hosts, owners};
use crate::{
    app::AppState,
    auth::{Client, SESSION},
    query,
    respond::{FleetResource, JSON, Resource, respond, to_json},
    view::View,
};

const NO_FLEET: &str = "this server shows no fleet: start one with `gpumon fleet --prometheus URL`, or this one with \
                        --fleet-prometheus URL\n";

/// The default ranges in seconds: a day of usage, a week of events, and an hour of history.
const USUAL_USAGE_S: u64 = 86_400;
const USUAL_EVENTS_S: u64 = 7 * 86_400;
const USUAL_HISTORY_S: u64 = 3600;

/// The query of `GET /api/v1/fleet`: whether the response may be old.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FleetQuery {
    /// Whether to return the last readings at once, however old they are. While new ones are being
    /// read, the state is `outdated` without a problem.
    #[serde(default)]
    at_once: bool,
}

/// The query for a single node of the fleet.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NodeQuery {
    /// The name of the node, as in `/api/v1/fleet`.
    node: String,
}

/// A range of time until now.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RangeQuery {
    /// The range in seconds; by default, a day of usage and a week of events.
    #[schemars(range(min = Range::LEAST_S, max = Range::MOST_S))]
    range_s: Option<u64>,
}

/// A range of time until now, for the fleet or a node.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FleetHistoryQuery {
    /// The range in seconds; by default, one hour.
    #[schemars(range(min = Range::LEAST_S, max = Range::MOST_S))]
    range_s: Option<u64>,
    /// The name of a node, as in `/api/v1/fleet`. By default, the history of the whole fleet is
    /// returned.
    node: Option<String>,
}

type Refusal = (StatusCode, String);

pub(crate) fn router() -> Router<AppState> {
    Router::new()
        .route("/api/v1/fleet", get(now))
        .route("/api/v1/fleet/node", get(node))
        .route("/api/v1/fleet/usage", get(usage))
        .route("/api/v1/fleet/events", get(events))
        .route("/api/v1/fleet/history", get(history))
        .route("/api/v1/fleet/targets", get(hosts::targets::targets))
}

/// Refuses runs, pauses and marks on a server that reads no GPUs.
pub(crate) async fn refuse_changes(
    State(app): State<AppState>,
    request: Request,
    next: Next,
) -> Response {
    let changes = !request.method().is_safe() && request.uri().path().starts_with("/api/");
    if !app.reads_gpus && changes && request.uri().path() != SESSION {
        let message = "this server shows a fleet and reads no GPUs itself: do that on the machine with the GPU\n";
        return (StatusCode::CONFLICT, message).into_response();
    }
    next.run(request).await
}

async fn now(asked: Asked) -> Result<Response, Refusal> {
    let reader = asked.reader()?;
    let FleetQuery { at_once } = asked.query("at_once=true, or nothing")?;
    let fleet = if at_once {
        reader.at_once().await
    } else {
        reader.now().await
    };
    asked
        .answer(FleetResource::Now { at_once }, move |view| {
            to_json(&*owners::of_fleet(&fleet, view))
        })
        .await
}

async fn node(asked: Asked) -> Result<Response, Refusal> {
    let NodeQuery { node } = asked.query("node=NAME")?;
    let fleet = asked
        .reader()?
        .node(&node)
        .await
        .map_err(|error| refusal(&error))?;
    asked
        .answer(FleetResource::Node(node), move |view| {
            to_json(&*owners::of_fleet(&fleet, view))
        })
        .await
}

async fn usage(asked: Asked) -> Result<Response, Refusal> {
    let range = asked.range(USUAL_USAGE_S)?;
    let usage = asked
        .reader()?
        .usage(range)
        .await
        .map_err(|error| refusal(&error))?;
    asked
        .answer(FleetResource::Usage(range.seconds()), move |view| {
            to_json(&*owners::of_usage(&usage, view))
        })
        .await
}

async fn events(asked: Asked) -> Result<Response, Refusal> {
    let range = asked.range(USUAL_EVENTS_S)?;
    let events = asked
        .reader()?
        .events(range)
        .await
        .map_err(|error| refusal(&error))?;
    asked
        .answer(FleetResource::Events(range.seconds()), move |_| {
            to_json(&*events)
        })
        .await
}

async fn history(asked: Asked) -> Result<Response, Refusal> {
    let FleetHistoryQuery { range_s, node } = asked.query("range_s and node")?;
    let range = Range::new(range_s.unwrap_or(USUAL_HISTORY_S)).map_err(|error| refusal(&error))?;
    let history = asked
        .reader()?
        .history(range, node.as_deref())
        .await
        .map_err(|error| refusal(&error))?;
    asked
        .answer(FleetResource::History(range.seconds(), node), move |_| {
            to_json(&*history)
        })
        .await
}

/// A request about the fleet.
struct Asked {
    app: AppState,
    client: Client,
    uri: Uri,
    headers: HeaderMap,
}

impl FromRequestParts<AppState> for Asked {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Infallible> {
        let client = parts
            .extensions
            .get::<Client>()
            .cloned()
            .expect("every request has one");
        Ok(Self {
            app: app.clone(),
            client,
            uri: parts.uri.clone(),
            headers: parts.headers.clone(),
        })
    }
}

impl Asked {
    /// Returns the reader of the fleet.
    ///
    /// # Errors
    /// Returns an error if the server shows no fleet.
    fn reader(&self) -> Result<&SharedFleet, Refusal> {
        let fleet = self
            .app
            .fleet
            .as_ref()
            .ok_or_else(|| (StatusCode::NOT_FOUND, NO_FLEET.to_owned()))?;
        Ok(&fleet.reader)
    }

    /// Parses the query.
    ///
    /// # Errors
    /// Returns an error that mentions `hint` if the query is not valid.
    fn query<T: DeserializeOwned>(&self, hint: &str) -> Result<T, Refusal> {
        let bad = |error: QueryRejection| {
            (
                StatusCode::BAD_REQUEST,
                format!("{}; ask for {hint}\n", error.body_text()),
            )
        };
        query::parsed(&self.uri).map_err(bad)
    }

    fn range(&self, usual_s: u64) -> Result<Range, Refusal> {
        let RangeQuery { range_s } = self.query("range_s, or nothing")?;
        Range::new(range_s.unwrap_or(usual_s)).map_err(|error| refusal(&error))
    }

    /// Returns a response with the data that a client with this view may see.
    async fn answer(
        self,
        resource: FleetResource,
        write: impl FnOnce(&View) -> Vec<u8> + Send + 'static,
    ) -> Result<Response, Refusal> {
        let view = match View::of(&self.client, self.app.show_processes).await {
            own @ View::Own(_) => own,
            // Fleets show owners by name, which is the same for all other views.
            View::Whole | View::Names { .. } => View::ANYBODY,
        };
        let of_view = view.clone();
        let (app, headers, who) = (&self.app, &self.headers, self.client.who());
        Ok(respond(
            app,
            headers,
            who,
            view,
            Resource::Fleet(resource),
            JSON,
            move |_| write(&of_view),
        )
        .await)
    }
}

fn refusal(error: &FleetError) -> Refusal {
    let status = match error {
        FleetError::Range(_) => StatusCode::BAD_REQUEST,
        FleetError::NoSuchNode(_) | FleetError::NotAvailable(_) => StatusCode::NOT_FOUND,
    };
    (status, format!("{error}\n"))
}
