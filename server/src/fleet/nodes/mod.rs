//! The page of a single node at `/nodes/NAME/`, with data from the node's own server.
//!
//! - [`url`] contains the address of a node's server, [`credentials`] the trusted authorities and
//!   the token, [`host_pattern`] the hosts that may receive the token, [`connect`] the connection,
//!   and [`problem`] the reasons for failures.
//! - [`request`] passes on HTTP requests, [`stream`] the WebSocket, and [`cookie`] the viewer's
//!   session at the node. [`places`] limits the number of simultaneous requests.
//! - [`answer`] parses HTTP responses and serializes them again, and [`body`] limits their memory.
//!   WebSocket frames are passed on unchanged, because browsers only hand them to the page's script
//!   and never render them.

pub(crate) mod answer;
mod body;
mod connect;
mod cookie;
mod credentials;
mod host_pattern;
mod places;
mod problem;
mod request;
pub(crate) mod routes;
mod stream;
mod url;

use std::{fmt, path::PathBuf, sync::Arc};

use gpumon_fleet::SharedFleet;

use self::{
    body::BodyLimits, credentials::Credentials, places::SlotPool, problem::NodeProblem,
    url::NodeTarget,
};
pub use self::{host_pattern::HostPattern, url::NodeUrl};

/// The maximum number of streams of all viewers together. Each stream uses two connections.
const MAX_STREAMS: usize = 256;

/// The maximum number of simultaneous requests other than streams.
const MAX_REQUESTS: usize = 64;

/// The settings for reaching the servers of nodes.
#[derive(Debug, Clone, Default)]
pub struct NodeSettings {
    /// The address pattern of the nodes' servers. Without it, nodes cannot be opened.
    pub url: Option<NodeUrl>,
    /// The hosts that may receive tokens, passwords and sessions.
    pub hosts: Vec<HostPattern>,
    /// The file with the authorities that sign the nodes' certificates. By default, the system's
    /// authorities are used.
    pub ca_file: Option<PathBuf>,
    /// The file with the token that is used for viewers without a session at the node.
    pub token_file: Option<PathBuf>,
}

/// The servers of nodes, with limits on the requests that are passed on to them.
#[derive(Clone)]
pub struct RemoteNodes {
    url: Option<NodeUrl>,
    hosts: Arc<[HostPattern]>,
    has_own_authority: bool,
    credentials: Arc<Credentials>,
    bodies: Arc<BodyLimits>,
    streams: Arc<SlotPool>,
    questions: Arc<SlotPool>,
}

impl fmt::Debug for RemoteNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteNodes")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl RemoteNodes {
    /// Reads the files of the trusted authorities and of the token.
    ///
    /// # Errors
    /// Returns the problem of a file and its remedy.
    pub fn open(settings: NodeSettings) -> Result<Self, String> {
        Ok(Self {
            url: settings.url,
            hosts: settings.hosts.into(),
            has_own_authority: settings.ca_file.is_some(),
            bodies: Arc::new(BodyLimits::new()),
            credentials: Arc::new(Credentials::open(settings.ca_file, settings.token_file)?),
            streams: SlotPool::new(MAX_STREAMS),
            questions: SlotPool::new(MAX_REQUESTS),
        })
    }

    /// Returns the address of a node's server.
    async fn find_target(
        &self,
        reader: &SharedFleet,
        node: &str,
    ) -> Result<NodeTarget, NodeProblem> {
        let known = reader.find_address(node);
        if known.is_none() {
            // The fleet may not have been read yet.
            reader.fetch_current_fleet().await;
        }
        let address = known
            .or_else(|| reader.find_address(node))
            .ok_or(NodeProblem::Unknown)?;
        let url = self.url.as_ref().ok_or_else(|| {
            NodeProblem::Unopenable(
                "this server does not open nodes; start it with --node-url".to_owned(),
            )
        })?;
        url.resolve(node, &address)
    }

    /// Returns `true` if tokens, passwords and sessions may be sent to this node. Prometheus
    /// chooses the hosts, so the administrator must have confirmed the host: with a pattern, as the
    /// only host of `--node-url`, or with an authority that issues certificates only for nodes.
    fn is_trusted(&self, target: &NodeTarget) -> bool {
        if self.hosts.is_empty() {
            let is_certified = self.has_own_authority && target.is_tls;
            return is_certified || self.url.as_ref().is_some_and(NodeUrl::has_fixed_host);
        }
        // Without TLS, any program on a machine can listen on a port that Prometheus chooses.
        let is_authentic = target.is_tls || self.url.as_ref().is_some_and(NodeUrl::has_fixed_port);
        is_authentic
            && self
                .hosts
                .iter()
                .any(|pattern| pattern.covers_host(&target.host))
    }

    /// Returns the fleet's reason why the node cannot be opened, or `problem` if the fleet has
    /// none.
    async fn explain_problem(
        &self,
        reader: &SharedFleet,
        node: &str,
        problem: NodeProblem,
    ) -> NodeProblem {
        if !problem.may_be_wrong_address() {
            return problem;
        }
        let fleet = reader.fetch_current_fleet().await;
        let place = (0..)
            .zip(&fleet.nodes.name)
            .find(|(_, name)| *name == node)
            .map(|(place, _): (u32, _)| place);
        let why = place.and_then(|place| fleet.nodes.unopenable.get(&place));
        why.map_or(problem, |why| NodeProblem::Unopenable(why.clone()))
    }
}
