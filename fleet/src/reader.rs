//! The interface that all sources of fleet data implement.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use thiserror::Error;

use crate::model::{Fleet, FleetEvents, FleetHistory, FleetUsage};

/// A future that resolves to the reader's response within its time limits.
pub type FleetFuture<'a, T> = BoxFuture<'a, T>;

/// A fleet reader that is shared by all viewers.
pub type SharedFleet = Arc<dyn FleetReader>;

/// A source of data about a fleet, such as Prometheus or hosts over ssh.
///
/// All viewers share the data that was read. The source is read only on request, and not more often
/// than the reader's period. Every method returns within the reader's time limit: if the source
/// cannot be read, the last data is returned, marked as
/// [`Outdated`](crate::model::FleetState::Outdated), with the cause and the remedy in `problems`.
pub trait FleetReader: Send + Sync {
    /// Returns the current state of all GPUs.
    fn fetch_current_fleet(&self) -> FleetFuture<'_, Arc<Fleet>>;

    /// Returns the last known state of all GPUs without waiting. While the source is being read,
    /// earlier data is marked as [`Outdated`](crate::model::FleetState::Outdated) without a
    /// problem.
    fn get_last_known_fleet(&self) -> FleetFuture<'_, Arc<Fleet>> {
        self.fetch_current_fleet()
    }

    /// Returns the current state of each GPU in one node, even if the fleet lists only nodes.
    ///
    /// # Errors
    /// Returns an error if the fleet has no node called `name`.
    fn fetch_node<'a>(&'a self, name: &'a str) -> FleetFuture<'a, Result<Arc<Fleet>, FleetError>>;

    /// Returns the usage by owner in a time range up to now.
    ///
    /// # Errors
    /// Returns an error if this source does not provide usage data.
    fn fetch_usage(&self, range: Range) -> FleetFuture<'_, Result<Arc<FleetUsage>, FleetError>>;

    /// Returns the events in a time range up to now.
    ///
    /// # Errors
    /// Returns an error if this source does not provide events.
    fn fetch_events(&self, range: Range) -> FleetFuture<'_, Result<Arc<FleetEvents>, FleetError>>;

    /// Returns the readings of all nodes or one node over a time range up to now.
    ///
    /// # Errors
    /// Returns an error if the fleet has no node of that name, or if this source does not provide a
    /// history.
    fn fetch_history<'a>(
        &'a self,
        range: Range,
        node: Option<&'a str>,
    ) -> FleetFuture<'a, Result<Arc<FleetHistory>, FleetError>>;

    /// Waits until all parts of the source have been read, but no longer than `patience`. Does
    /// nothing for sources that are read as a whole.
    fn wait_until_settled(&self, patience: Duration) -> FleetFuture<'_, ()> {
        let _ = patience;
        Box::pin(async {})
    }

    /// Returns how much memory the reader has freed since the last call, in KiB. The allocator may
    /// not yet have returned it to the system.
    fn take_released_kib(&self) -> usize {
        0
    }

    /// Closes all connections of the source. Waits for this only briefly.
    fn close(&self) -> FleetFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Returns a node's address according to the last data, or `None` if the fleet has no such
    /// node.
    fn find_address(&self, node: &str) -> Option<NodeAddress>;
}

/// A time range up to now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    seconds: u32,
}

/// The address at which a node's metrics are scraped, from the label `instance`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeAddress {
    /// A host name or an IP address. IPv6 addresses have no brackets.
    pub host: String,
    /// The port of the metrics endpoint, if known.
    pub port: Option<u16>,
}

/// The reasons why a request to a fleet fails.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FleetError {
    /// The fleet has no node of the given name.
    #[error("the fleet has no node '{0}'; /api/v1/fleet lists all nodes")]
    NoSuchNode(String),
    /// The source does not provide this data. The sentence gives the reason and names a source that
    /// does.
    #[error("{0}")]
    NotAvailable(String),
    #[error(
        "range_s={0} is out of range; use {least} to {most} seconds", least = Range::LEAST_S,
        most = Range::MOST_S
    )]
    Range(u64),
}

impl Range {
    /// The minimum length of a range, in seconds (a quarter of an hour).
    pub const LEAST_S: u32 = 900;
    /// The maximum length of a range, in seconds (thirty days).
    pub const MOST_S: u32 = 30 * 86_400;

    /// Creates a range of `seconds`.
    ///
    /// # Errors
    /// Returns an error if the range is too short or too long.
    pub fn new(seconds: u64) -> Result<Self, FleetError> {
        let fits = u32::try_from(seconds)
            .ok()
            .filter(|it| (Self::LEAST_S..=Self::MOST_S).contains(it));
        fits.map(|seconds| Self { seconds })
            .ok_or(FleetError::Range(seconds))
    }

    pub fn seconds(self) -> u32 {
        self.seconds
    }
}
