//! Many machines at once: what a [`FleetReader`](gpumon_fleet::FleetReader) tells, over HTTP.
//!
//! [`routes`] are the endpoints, [`owners`] is who of those that hold GPUs is told to whom,
//! [`nodes`] all there is of one node, and [`hosts`] those that are read over ssh.

pub mod hosts;
pub mod nodes;
mod owners;
pub(crate) mod routes;

use std::{fmt, sync::Arc};

use gpumon_fleet::SharedFleet;

use self::{hosts::Hosts, nodes::RemoteNodes};

/// Which fleet is shown.
#[derive(Clone)]
pub struct FleetSettings {
    /// Who tells of it.
    pub reader: SharedFleet,
    /// How all there is of a node is reached.
    pub nodes: RemoteNodes,
    /// The hosts, where they are read over ssh: all there is of them is here.
    pub hosts: Option<Arc<Hosts>>,
}

impl fmt::Debug for FleetSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetSettings")
            .field("nodes", &self.nodes)
            .finish_non_exhaustive()
    }
}
