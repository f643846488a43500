//! The interface of all sources of a fleet.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use thiserror::Error;

use crate::model::{Fleet, FleetEvents, FleetHistory, FleetUsage};

/// The future of an answer, which arrives within the reader's time limits.
pub type Answer<'a, T> = BoxFuture<'a, T>;

/// A reader shared by all viewers.
pub type SharedFleet = Arc<dyn FleetReader>;

/// A source of data about a fleet, such as Prometheus or hosts over ssh.
///
/// All viewers share what was read. Nothing is read without a request, or more often than the
/// reader's own period. No answer takes longer than the reader's time limit: if the source could
/// not be read, the last data is returned, marked as
/// [`Outdated`](crate::model::FleetState::Outdated), with the cause and the remedy among its
/// `problems`.
pub trait FleetReader: Send + Sync {
    /// Returns the current state of all GPUs.
    fn now(&self) -> Answer<'_, Arc<Fleet>>;

    /// Returns the known state of all GPUs without waiting. While the source is read again, earlier
    /// data is [`Outdated`](crate::model::FleetState::Outdated) without a problem.
    fn at_once(&self) -> Answer<'_, Arc<Fleet>> {
        self.now()
    }

    /// Returns the current state of each GPU of one node, even if the fleet lists only nodes.
    ///
    /// # Errors
    /// Returns an error if there is no node of this name.
    fn node<'a>(&'a self, name: &'a str) -> Answer<'a, Result<Arc<Fleet>, FleetError>>;

    /// Returns the usage by owner up to now.
    ///
    /// # Errors
    /// Returns an error if this source has no such data.
    fn usage(&self, range: Range) -> Answer<'_, Result<Arc<FleetUsage>, FleetError>>;

    /// Returns the events up to now.
    ///
    /// # Errors
    /// Returns an error if this source has no such data.
    fn events(&self, range: Range) -> Answer<'_, Result<Arc<FleetEvents>, FleetError>>;

    /// Returns the readings of all nodes or one node over time, up to now.
    ///
    /// # Errors
    /// Returns an error if there is no node of this name, or if this source has no such data.
    fn history<'a>(
        &'a self,
        range: Range,
        node: Option<&'a str>,
    ) -> Answer<'a, Result<Arc<FleetHistory>, FleetError>>;

    /// Waits until a source that is read in parts has been read completely, but no longer than
    /// `patience`.
    fn settled(&self, patience: Duration) -> Answer<'_, ()> {
        let _ = patience;
        Box::pin(async {})
    }

    /// Returns how many KiB of memory the reader has freed since the last call. The allocator keeps
    /// much of it.
    fn released_kib(&self) -> usize {
        0
    }

    /// Closes all connections of the source, and waits for that, but not for long.
    fn end(&self) -> Answer<'_, ()> {
        Box::pin(async {})
    }

    /// Returns the address of a node according to the last data, or `None` if there is no node of
    /// this name.
    fn address(&self, node: &str) -> Option<NodeAddress>;
}

/// A time range that ends now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    seconds: u32,
}

/// The address from which the metrics of a node are read, according to the label `instance`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeAddress {
    /// A host name or an IP address. IPv6 addresses have no brackets.
    pub host: String,
    /// The port of the metrics, if known.
    pub port: Option<u16>,
}

/// The reasons why a request to a fleet fails.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FleetError {
    /// The fleet has no node of this name.
    #[error("no node of the fleet is called '{0}'; /api/v1/fleet lists their names")]
    NoSuchNode(String),
    /// The source has no such data. The sentence contains the reason and a source that has it.
    #[error("{0}")]
    NotAvailable(String),
    #[error("range_s is {0}; use {least} to {most} seconds", least = Range::LEAST_S, most = Range::MOST_S)]
    Range(u64),
}

impl Range {
    /// The minimum, a quarter of an hour, in seconds.
    pub const LEAST_S: u32 = 900;
    /// The maximum, thirty days, in seconds.
    pub const MOST_S: u32 = 30 * 86_400;

    /// Creates a range of this many seconds.
    ///
    /// # Errors
    /// Returns an error if it is too short or too long.
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
