//! All there is of one node of a fleet: the page of this server, at `/nodes/NAME/`, on what that
//! node tells.
//!
//! - [`url`] is where a node's own server is, [`credentials`] what it is known by and what it is
//!   shown, [`host_pattern`] to which hosts, [`connect`] the connection, [`problem`] why there is
//!   none.
//! - [`request`] passes on what is asked over HTTP, [`stream`] the stream, [`cookie`] the session
//!   of a viewer at the node; [`places`] is how much of that there may be at once.
//! - [`answer`] parses answers over HTTP and writes them again, [`body`] limits their memory.
//!   Frames of a stream are passed on as they are: browsers hand them to the page's script, and
//!   never show them as a page.

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

/// Streams of all viewers, each of which takes two connections.
const STREAMS: usize = 256;

/// Other questions.
const QUESTIONS: usize = 64;

/// How the servers of nodes are reached.
#[derive(Debug, Clone, Default)]
pub struct NodeSettings {
    /// Where they are; nowhere without.
    pub url: Option<NodeUrl>,
    /// Hosts that tokens, passwords and sessions may be sent to.
    pub hosts: Vec<HostPattern>,
    /// Certificates that theirs are checked with; those of the system without.
    pub ca_file: Option<PathBuf>,
    /// The token for viewers who have no session at a node.
    pub token_file: Option<PathBuf>,
}

/// The servers of nodes.
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
    /// What is wrong with one, and the cure.
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

    /// Where this node's server is.
    async fn target(&self, reader: &SharedFleet, node: &str) -> Result<Target, NodeProblem> {
        let known = reader.address(node);
        if known.is_none() {
            // Perhaps nobody has asked for the fleet yet.
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
    /// chooses the hosts, so that the administrator has to have named this one: by a pattern, as
    /// the only host of `--node-url`, or by an authority that issues certificates for nodes alone.
    fn is_trusted(&self, target: &Target) -> bool {
        if self.hosts.is_empty() {
            let is_certified = self.has_own_authority && target.is_tls;
            return is_certified || self.url.as_ref().is_some_and(NodeUrl::has_fixed_host);
        }
        // Without TLS, any program of a machine can listen at a port that Prometheus chooses.
        let is_authentic = target.is_tls || self.url.as_ref().is_some_and(NodeUrl::has_fixed_port);
        is_authentic
            && self
                .hosts
                .iter()
                .any(|pattern| pattern.matches(&target.host))
    }

    /// The same problem, or what the fleet knows of it.
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
