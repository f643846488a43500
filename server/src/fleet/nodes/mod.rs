//! The page of a single node at `/nodes/NAME/`, with data from the node's own server.
//!
//! - [`url`] contains the address of a node's server. [`credentials`] contains the trusted
//!   authorities, the token, and the hosts that may receive the token. [`problem`] contains the
//!   reasons for failures.
//! - [`request`] connects to the node and passes on HTTP requests and the viewer's session at the
//!   node. [`stream`] passes on the WebSocket.
//! - [`response`] parses HTTP responses and serializes them again. WebSocket frames are passed on
//!   unchanged, because browsers only hand them to the page's script and never render them.
//!
//! This module itself limits the number of simultaneous requests and the memory for responses.

mod credentials;
mod problem;
mod request;
pub(crate) mod response;
pub(crate) mod routes;
mod stream;
mod url;

use std::{path::PathBuf, sync::Arc};

use gpumon_fleet::SharedFleet;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::{credentials::Credentials, problem::NodeProblem, url::NodeTarget};
pub use self::{credentials::HostPattern, url::NodeUrl};
use crate::{
    peer::PeerKey,
    quota::{Quota, Reservation},
};

/// The maximum number of streams of all viewers together. Each stream uses two connections.
const MAX_STREAMS: usize = 256;

/// The maximum number of simultaneous requests, not counting streams.
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
    streams: Arc<Quota>,
    requests: Arc<Quota>,
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
            streams: Quota::new(MAX_STREAMS),
            requests: Quota::new(MAX_REQUESTS),
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
                "this server cannot open the pages of nodes; start it with --node-url".to_owned(),
            )
        })?;
        url.resolve(node, &address)
    }

    /// Returns `true` if tokens, passwords and sessions may be sent to this node. Prometheus
    /// chooses the hosts, so the administrator must have confirmed the host in one of three ways:
    /// with a pattern, as the only host of `--node-url`, or with an authority that issues
    /// certificates only for nodes.
    fn may_receive_credentials(&self, target: &NodeTarget) -> bool {
        if self.hosts.is_empty() {
            let is_certified = self.has_own_authority && target.is_tls;
            return is_certified || self.url.as_ref().is_some_and(NodeUrl::has_fixed_host);
        }
        // Without TLS, the port must not come from Prometheus, because any program on the machine
        // could be listening on it.
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

/// Reserves a slot for a request that is passed on, or returns `None` if no slot is free for this
/// client. The number of slots is limited, because each request needs a connection to a node. A
/// single client gets at most a quarter of them.
fn take_slot(slots: &Arc<Quota>, who: PeerKey) -> Option<Reservation> {
    slots.try_reserve(who, 1, |own, _| own <= slots.total.div_ceil(4))
}

// Bodies of nodes' responses, with memory limits.

/// The maximum total size of the bodies that are being read or parsed, in bytes.
const MAX_TOTAL_BODY_BYTES: usize = 128 << 20;

/// The unit in which memory is reserved, in bytes.
const BODY_BLOCK_BYTES: usize = 64 << 10;

/// The maximum number of responses that are parsed simultaneously.
const MAX_PARSERS: usize = 2;

/// Limits on the memory and CPU time for nodes' responses.
#[derive(Debug)]
struct BodyLimits {
    blocks: Arc<Semaphore>,
    parsers: Arc<Semaphore>,
}

/// A body together with the memory reserved for it.
struct Body {
    bytes: Vec<u8>,
    reserved: OwnedSemaphorePermit,
}

impl BodyLimits {
    fn new() -> Self {
        let blocks = Arc::new(Semaphore::new(MAX_TOTAL_BODY_BYTES / BODY_BLOCK_BYTES));
        Self {
            blocks,
            parsers: Arc::new(Semaphore::new(MAX_PARSERS)),
        }
    }

    /// Reads a body of at most `longest` bytes.
    ///
    /// # Errors
    /// Returns an error if the body is longer or incomplete, or if too many bodies are being read.
    async fn read_body(
        &self,
        node: &str,
        mut body: Incoming,
        longest: usize,
    ) -> Result<Body, NodeProblem> {
        let acquire = |blocks: usize| {
            Arc::clone(&self.blocks)
                .try_acquire_many_owned(blocks as u32)
                .map_err(|_| NodeProblem::TooMany)
        };
        // The permit has no blocks at first. The blocks for each frame are merged into it.
        let mut read = Body {
            bytes: Vec::new(),
            reserved: acquire(0)?,
        };
        while let Some(frame) = body.frame().await {
            let frame = frame
                .map_err(|error| NodeProblem::NotGpumon(node.to_owned(), error.to_string()))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            let length = read.bytes.len() + data.len();
            if length > longest {
                return Err(NodeProblem::TooLong(node.to_owned(), longest));
            }
            let missing = length.div_ceil(BODY_BLOCK_BYTES) - read.reserved.num_permits();
            read.reserved.merge(acquire(missing)?);
            read.bytes.extend_from_slice(&data);
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_cannot_occupy_all_slots() {
        let pool = Quota::new(8);
        let of = |uid| take_slot(&pool, PeerKey::User(uid));
        let mut held = vec![of(1).unwrap(), of(1).unwrap()];
        assert!(of(1).is_none());
        for uid in 2..5 {
            held.extend([of(uid).unwrap(), of(uid).unwrap()]);
        }
        assert!(of(5).is_none(), "all are taken");
        held.remove(0);
        assert!(of(1).is_some());
        drop(held);
        let all = pool.try_reserve(PeerKey::User(1), 8, |own, free| own == 8 && free == 8);
        assert!(all.is_some());
    }
}
