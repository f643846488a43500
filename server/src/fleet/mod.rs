//! Fleets: the data of a [`FleetReader`](gpumon_fleet::FleetReader) over HTTP.
//!
//! [`routes`] contains the endpoints, and limits which owners a client sees. [`nodes`] passes
//! requests on to a single node, and [`hosts`] reads hosts over ssh.

pub mod hosts;
pub mod nodes;
pub(crate) mod routes;

use std::sync::Arc;

use gpumon_fleet::SharedFleet;

use self::{hosts::Hosts, nodes::RemoteNodes};

/// The fleet that a server shows, and how its nodes are reached.
#[derive(Clone)]
pub struct FleetSettings {
    /// The reader of the fleet's data.
    pub reader: SharedFleet,
    /// Access to the servers of single nodes.
    pub nodes: RemoteNodes,
    /// The hosts, if they are read over ssh. In this case, this server serves all their data
    /// itself.
    pub hosts: Option<Arc<Hosts>>,
}
