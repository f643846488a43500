//! The page of a single node at `/nodes/NAME/`, with data from the node's own server.
//!
//! - [`url`] is the address of a node's server, [`credentials`] the trusted authorities and the
//!   token, [`host_pattern`] the hosts that may receive the token, [`connect`] the connection,
//!   [`problem`] the reason if it fails.
//! - [`request`] passes on HTTP requests, [`stream`] the WebSocket, [`cookie`] the viewer's session
//!   at the node; [`places`] limits how many there are at a time.
//! - [`answer`] parses HTTP responses and serializes them again, [`body`] limits their memory.
//!   WebSocket frames are passed on unchanged: browsers only hand them to the page's script, and
//!   never render them.

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
    body::Bodies, credentials::Credentials, places::Places, problem::NodeProblem, url::Target,
};
pub use self::{host_pattern::HostPattern, url::NodeUrl};

/// The maximum number of streams of all viewers. Each takes two connections.
const STREAMS: usize = 256;

/// The maximum number of other requests at a time.
const QUESTIONS: usize = 64;

/// The settings for reaching the servers of nodes.
#[derive(Debug, Clone, Default)]
pub struct NodeSettings {
    /// The address pattern of the nodes' servers. Without it, nodes cannot be opened.
    pub url: Option<NodeUrl>,
    /// The hosts that may receive tokens, passwords and sessions.
    pub hosts: Vec<HostPattern>,
    /// The file of authorities that sign the nodes' certificates; by default, those of the system.
    pub ca_file: Option<PathBuf>,
    /// The file with the token for viewers who have no session at a node.
    pub token_file: Option<PathBuf>,
}

/// The servers of nodes, and how many requests may be passed on to them.
#[derive(Clone)]
pub struct RemoteNodes {
    url: Option<NodeUrl>,
    hosts: Arc<[HostPattern]>,
    has_own_authority: bool,
    credentials: Arc<Credentials>,
    bodies: Arc<Bodies>,
    streams: Arc<Places>,
    questions: Arc<Places>,
}

impl fmt::Debug for RemoteNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteNodes")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl RemoteNodes {
    /// Reads the files.
    ///
    /// # Errors
    /// Returns the problem of a file with its cure.
    pub fn open(settings: NodeSettings) -> Result<Self, String> {
        Ok(Self {
            url: settings.url,
            hosts: settings.hosts.into(),
            has_own_authority: settings.ca_file.is_some(),
            bodies: Arc::new(Bodies::new()),
            credentials: Arc::new(Credentials::open(settings.ca_file, settings.token_file)?),
            streams: Places::new(STREAMS),
            questions: Places::new(QUESTIONS),
        })
    }

    /// Returns the address of a node's server.
    async fn target(&self, reader: &SharedFleet, node: &str) -> Result<Target, NodeProblem> {
        let known = reader.address(node);
        if known.is_none() {
            // The reader may not have read the fleet yet.
            reader.now().await;
        }
        let address = known
            .or_else(|| reader.address(node))
            .ok_or(NodeProblem::Unknown)?;
        let url = self.url.as_ref().ok_or_else(|| {
            NodeProblem::Unopenable(
                "this server opens no nodes; start it with --node-url".to_owned(),
            )
        })?;
        url.target(node, &address)
    }

    /// Returns `true` if tokens, passwords and sessions may be sent to this node. Prometheus
    /// chooses the hosts, so the administrator must have confirmed this one: by a pattern, as the
    /// only host of `--node-url`, or with an authority that issues certificates only for nodes.
    fn is_trusted(&self, target: &Target) -> bool {
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
                .any(|pattern| pattern.matches(&target.host))
    }

    /// Returns the reason that the fleet knows for the problem, or else the problem itself.
    async fn explained(
        &self,
        reader: &SharedFleet,
        node: &str,
        problem: NodeProblem,
    ) -> NodeProblem {
        if !problem.is_of_address() {
            return problem;
        }
        let fleet = reader.now().await;
        let place = (0..)
            .zip(&fleet.nodes.name)
            .find(|(_, name)| *name == node)
            .map(|(place, _): (u32, _)| place);
        let why = place.and_then(|place| fleet.nodes.unopenable.get(&place));
        why.map_or(problem, |why| NodeProblem::Unopenable(why.clone()))
    }
}
