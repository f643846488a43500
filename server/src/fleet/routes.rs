//! The endpoints below `/api/v1/fleet`: the current state of all GPUs, usage, events, and history,
//! with only the owners that a client may see.

use std::{borrow::Cow, collections::BTreeMap, convert::Infallible};

use axum::{
    Router,
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, StatusCode, Uri, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
    routing::get,
};
use gpumon_fleet::{
    FleetError, Range, SharedFleet,
    model::{Fleet, FleetOwner, FleetState, FleetUsage},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::hosts;
use crate::{
    app::AppState,
    auth::{Client, SESSION_PATH},
    hub::Hub,
    query::parse_query,
    refusal::Refusal,
    responses::{FleetResource, Resource, respond_with_json, to_json},
    view::View,
};

const NO_FLEET_MESSAGE: &str = "this server shows no fleet: start one with `gpumon fleet --prometheus \
                        URL`, or restart this one with --fleet-prometheus URL\n";

/// The default range of usage in seconds: a day.
const DEFAULT_USAGE_S: u64 = 86_400;
const DEFAULT_EVENTS_S: u64 = 7 * 86_400;
const DEFAULT_HISTORY_S: u64 = 3600;

/// The query of `GET /api/v1/fleet`: whether the response may be old.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FleetQuery {
    /// Whether to return the last readings immediately, however old they are. While new readings
    /// are being fetched, the state is `outdated` without a problem.
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

/// A time range that ends now.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RangeQuery {
    /// The range in seconds; by default, a day for usage and a week for events.
    #[schemars(range(min = Range::LEAST_S, max = Range::MOST_S))]
    range_s: Option<u64>,
}

/// A time range that ends now, for the fleet or for one node.
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

pub(crate) fn build_router() -> Router<AppState> {
    Router::new()
        .route("/api/v1/fleet", get(get_fleet))
        .route("/api/v1/fleet/node", get(get_node))
        .route("/api/v1/fleet/usage", get(get_usage))
        .route("/api/v1/fleet/events", get(get_events))
        .route("/api/v1/fleet/history", get(get_history))
        .route("/api/v1/fleet/targets", get(hosts::routes::get_targets))
}

/// Refuses runs, pauses and marks on a server that reads no GPUs.
pub(crate) async fn refuse_changes(
    State(app): State<AppState>,
    request: Request,
    next: Next,
) -> Response {
    let changes = !request.method().is_safe() && request.uri().path().starts_with("/api/");
    if !app.reads_gpus && changes && request.uri().path() != SESSION_PATH {
        let message = "this server shows a fleet and reads no GPUs itself: send this request to \
                       the machine with the GPU\n";
        return (StatusCode::CONFLICT, message).into_response();
    }
    next.run(request).await
}

async fn get_fleet(asked: FleetRequest) -> Result<Response, Refusal> {
    let reader = asked.reader()?;
    let FleetQuery { at_once } = parse_query(&asked.uri, "at_once=true, or no parameter")?;
    let fleet = if at_once {
        reader.get_last_known_fleet().await
    } else {
        reader.fetch_current_fleet().await
    };
    asked
        .respond(FleetResource::Now { at_once }, move |view| {
            to_json(&*filter_fleet(&fleet, view))
        })
        .await
}

async fn get_node(asked: FleetRequest) -> Result<Response, Refusal> {
    let NodeQuery { node } = parse_query(&asked.uri, "node=NAME")?;
    let fleet = asked
        .reader()?
        .fetch_node(&node)
        .await
        .map_err(|error| to_refusal(&error))?;
    asked
        .respond(FleetResource::Node(node), move |view| {
            to_json(&*filter_fleet(&fleet, view))
        })
        .await
}

async fn get_usage(asked: FleetRequest) -> Result<Response, Refusal> {
    let range = asked.parse_range(DEFAULT_USAGE_S)?;
    let usage = asked
        .reader()?
        .fetch_usage(range)
        .await
        .map_err(|error| to_refusal(&error))?;
    asked
        .respond(FleetResource::Usage(range.seconds()), move |view| {
            to_json(&*filter_usage(&usage, view))
        })
        .await
}

async fn get_events(asked: FleetRequest) -> Result<Response, Refusal> {
    let range = asked.parse_range(DEFAULT_EVENTS_S)?;
    let events = asked
        .reader()?
        .fetch_events(range)
        .await
        .map_err(|error| to_refusal(&error))?;
    asked
        .respond(FleetResource::Events(range.seconds()), move |_| {
            to_json(&*events)
        })
        .await
}

async fn get_history(asked: FleetRequest) -> Result<Response, Refusal> {
    let FleetHistoryQuery { range_s, node } = parse_query(&asked.uri, "range_s and node")?;
    let range =
        Range::new(range_s.unwrap_or(DEFAULT_HISTORY_S)).map_err(|error| to_refusal(&error))?;
    let history = asked
        .reader()?
        .fetch_history(range, node.as_deref())
        .await
        .map_err(|error| to_refusal(&error))?;
    asked
        .respond(FleetResource::History(range.seconds(), node), move |_| {
            to_json(&*history)
        })
        .await
}

/// A request about the fleet.
struct FleetRequest {
    app: AppState,
    client: Client,
    uri: Uri,
    headers: HeaderMap,
}

impl FromRequestParts<AppState> for FleetRequest {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, Infallible> {
        let client = parts
            .extensions
            .get::<Client>()
            .cloned()
            .expect("every request has a client");
        Ok(Self {
            app: app.clone(),
            client,
            uri: parts.uri.clone(),
            headers: parts.headers.clone(),
        })
    }
}

impl FleetRequest {
    /// Returns the reader of the fleet.
    ///
    /// # Errors
    /// Returns an error if the server shows no fleet.
    fn reader(&self) -> Result<&SharedFleet, Refusal> {
        let fleet = self
            .app
            .fleet
            .as_ref()
            .ok_or_else(|| (StatusCode::NOT_FOUND, NO_FLEET_MESSAGE.to_owned()))?;
        Ok(&fleet.reader)
    }

    fn parse_range(&self, usual_s: u64) -> Result<Range, Refusal> {
        let RangeQuery { range_s } = parse_query(&self.uri, "range_s, or no parameter")?;
        Range::new(range_s.unwrap_or(usual_s)).map_err(|error| to_refusal(&error))
    }

    /// Returns a response with the data that a client with this view may see.
    async fn respond(
        self,
        resource: FleetResource,
        write: impl FnOnce(&View) -> Vec<u8> + Send + 'static,
    ) -> Result<Response, Refusal> {
        let view = match View::for_client(&self.client, self.app.show_processes).await {
            own @ View::Own(_) => own,
            // Fleets show all owners by name, so the data is the same for all other views.
            View::Whole | View::Names { .. } => View::UNKNOWN_CLIENT,
        };
        let resource = Resource::Fleet(resource);
        let write = move |_: &Hub, view: &View| write(view);
        Ok(respond_with_json(
            &self.app,
            &self.headers,
            &self.client,
            view,
            resource,
            write,
        )
        .await)
    }
}

fn to_refusal(error: &FleetError) -> Refusal {
    let status = match error {
        FleetError::Range(_) => StatusCode::BAD_REQUEST,
        FleetError::NoSuchNode(_) | FleetError::NotAvailable(_) => StatusCode::NOT_FOUND,
    };
    (status, format!("{error}\n"))
}

// The GPU owners that a client may see: all owners, unless the server shows each user only their
// own processes.

const HIDDEN_OWNERS_MESSAGE: &str = "This server shows each user only their own processes; ask \
                                     its administrator to start it without --show-processes own.";

/// Returns the fleet with only the owners that a client with this view may see.
fn filter_fleet<'a>(fleet: &'a Fleet, view: &View) -> Cow<'a, Fleet> {
    let View::Own(user) = view else {
        return Cow::Borrowed(fleet);
    };
    let mut shown = fleet.clone();
    let mut places = BTreeMap::new();
    shown.owners.clear();
    for (place, owner) in (0..).zip(&fleet.owners) {
        if owner_is_user(owner, user.as_deref()) {
            places.insert(place, shown.owners.len() as u32);
            shown.owners.push(owner.clone());
        }
    }
    shown.holds.retain_mut(|hold| {
        places
            .get(&hold.owner)
            .map(|place| hold.owner = *place)
            .is_some()
    });
    if shown.owners.is_empty() {
        shown
            .missing
            .entry("owners".to_owned())
            .or_insert_with(|| HIDDEN_OWNERS_MESSAGE.to_owned());
    }
    Cow::Owned(shown)
}

/// Returns the usage that a client with this view may see. Total energy, and usage that is not
/// attributed to any owner, are always included.
fn filter_usage<'a>(usage: &'a FleetUsage, view: &View) -> Cow<'a, FleetUsage> {
    let View::Own(user) = view else {
        return Cow::Borrowed(usage);
    };
    let mut shown = usage.clone();
    let owners = usage
        .owners
        .iter()
        .filter(|used| owner_is_user(&used.owner, user.as_deref()))
        .cloned()
        .collect();
    shown.set_owners(owners);
    // A user's totals are complete even if the list of owners was truncated.
    let own = usage
        .users
        .iter()
        .find(|group| user.is_some() && group.name.as_deref() == user.as_deref());
    if let Some(own) = own {
        shown.unlisted = own.subtract_part(&shown.users.pop().unwrap_or_default());
        shown.owners_total = own.owners.max(shown.owners_total);
        let may_have_pods = if shown.owners.is_empty() {
            &usage.namespaces
        } else {
            &shown.namespaces
        };
        if shown.unlisted.owners > 0 && !may_have_pods.is_empty() {
            shown.state = FleetState::Partial;
            shown
                .problems
                .push("The sums for namespaces do not include unlisted jobs".to_owned());
        }
        shown.users = vec![own.clone()];
    }
    Cow::Owned(shown)
}

fn owner_is_user(owner: &FleetOwner, user: Option<&str>) -> bool {
    user.is_some() && owner.user.as_deref() == user
}

#[cfg(test)]
mod tests {
    use gpumon_fleet::model::{
        FleetHold, FleetSource, FleetSourceKind, OwnerKind, OwnerUsage, UsageGroup,
    };

    use super::*;

    fn make_owner(user: Option<&str>) -> FleetOwner {
        FleetOwner {
            user: user.map(Into::into),
            kind: OwnerKind::User,
            id: String::new(),
            namespace: None,
        }
    }

    #[test]
    fn restricted_view_hides_other_owners() {
        let source = FleetSource {
            kind: FleetSourceKind::Prometheus,
            name: "http://localhost:9090".to_owned(),
        };
        let fleet = Fleet {
            owners: vec![
                make_owner(Some("bob")),
                make_owner(None),
                make_owner(Some("ana")),
            ],
            holds: vec![
                FleetHold { gpu: 0, owner: 0 },
                FleetHold { gpu: 1, owner: 2 },
                FleetHold { gpu: 2, owner: 1 },
            ],
            ..Fleet::new_unread(source, 1, 15)
        };
        let shown = |user: Option<&str>| {
            filter_fleet(&fleet, &View::Own(user.map(Into::into))).into_owned()
        };
        let ana = shown(Some("ana"));
        assert_eq!(
            (ana.owners, ana.holds),
            (
                vec![make_owner(Some("ana"))],
                vec![FleetHold { gpu: 1, owner: 0 }]
            )
        );
        assert!(ana.missing.is_empty());
        for user in [None, Some("eve")] {
            let nobody = shown(user);
            assert!(
                nobody.owners.is_empty() && nobody.holds.is_empty(),
                "{user:?}"
            );
            assert_eq!(nobody.missing["owners"], HIDDEN_OWNERS_MESSAGE);
        }
        assert_eq!(*filter_fleet(&fleet, &View::UNKNOWN_CLIENT), fleet);
    }

    #[test]
    fn restricted_view_keeps_sums_of_gpus_without_owner() {
        let used = |user| OwnerUsage {
            owner: make_owner(user),
            gpu_s: Some(1.0),
            active_gpu_s: None,
            energy_joules: None,
            nodes: 1,
        };
        let group = |name: Option<&str>, owners, gpu_s| UsageGroup {
            name: name.map(Into::into),
            owners,
            gpu_s: Some(gpu_s),
            ..UsageGroup::default()
        };
        let usage = FleetUsage {
            from_ms: 0,
            to_ms: 1,
            state: FleetState::Current,
            problems: Vec::new(),
            owners: vec![used(Some("bob")), used(Some("ana")), used(None)],
            owners_total: 3,
            unlisted: UsageGroup::default(),
            users: vec![
                group(Some("bob"), 1, 1.0),
                group(Some("ana"), 3, 9.0),
                group(None, 1, 1.0),
            ],
            namespaces: Vec::new(),
            unheld_gpu_s: Some(5.0),
            unheld_energy_joules: None,
            energy_joules: Some(7.0),
        };
        let shown = filter_usage(&usage, &View::Own(Some("ana".into()))).into_owned();
        assert_eq!(
            (shown.owners, shown.owners_total),
            (vec![used(Some("ana"))], 3)
        );
        // The list of owners is truncated: two of the user's three jobs are not in it.
        assert_eq!(
            (shown.users, shown.unlisted),
            (vec![group(Some("ana"), 3, 9.0)], group(None, 2, 8.0))
        );
        assert_eq!(
            (shown.unheld_gpu_s, shown.energy_joules),
            (Some(5.0), Some(7.0))
        );
        // None of this user's jobs is in the truncated list.
        let eve = group(Some("eve"), 2, 0.5);
        let unlisted = FleetUsage {
            users: vec![eve.clone()],
            owners: vec![used(Some("bob"))],
            ..usage.clone()
        };
        let shown = filter_usage(&unlisted, &View::Own(Some("eve".into()))).into_owned();
        assert_eq!(
            (shown.owners, shown.owners_total, shown.users),
            (vec![], 2, vec![eve])
        );
        assert_eq!(shown.unlisted, group(None, 2, 0.5));
        let nobody = filter_usage(&usage, &View::Own(None)).into_owned();
        assert_eq!(
            (nobody.owners_total, nobody.users, nobody.unlisted),
            (0, vec![], UsageGroup::default())
        );
    }
}
