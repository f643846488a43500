//! Many machines at once: what a [`FleetReader`](gpumon_fleet::FleetReader) tells, over HTTP.
//!
//! [`routes`] are the endpoints, [`owners`] is who of those that hold GPUs is told to whom, [`nodes`] all there is of one
//! node.

pub mod nodes;
mod owners;
pub(crate) mod routes;

use std::fmt;

use gpumon_fleet::SharedFleet;

use self::nodes::RemoteNodes;

/// Which fleet is shown.
#[derive(Clone)]
pub struct FleetSettings {
    /// Who tells of it.
    pub reader: SharedFleet,
    /// How all there is of a node is reached.
    pub nodes: RemoteNodes,
}

impl fmt::Debug for FleetSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetSettings").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}
