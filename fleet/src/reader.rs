//! Who tells of a fleet.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use thiserror::Error;

use crate::model::{Fleet, FleetEvents, FleetHistory, FleetUsage};

/// An answer that is waited for, within the reader's limits in time.
pub type Answer<'a, T> = BoxFuture<'a, T>;

/// The reader that all viewers share.
pub type SharedFleet = Arc<dyn FleetReader>;

/// Tells of a fleet: what reads Prometheus, or hosts over ssh.
///
/// All viewers share what was read; nothing is read while nobody asks, and nothing more often than
/// the reader's own period. No answer takes longer than the reader's limit in time: what could not
/// be read is the last that could, marked as [`Outdated`](crate::model::FleetState::Outdated), with
/// the cause and the cure among its `problems`.
pub trait FleetReader: Send + Sync {
    /// How all GPUs are now.
    fn now(&self) -> Answer<'_, Arc<Fleet>>;

    /// The same at once, as far as something is known: what was read before is
    /// [`Outdated`](crate::model::FleetState::Outdated) without a problem while it is read anew,
    /// for which [`Self::now`] waits.
    fn at_once(&self) -> Answer<'_, Arc<Fleet>> {
        self.now()
    }

    /// How the GPUs of one node are now, each of them, also where [`Self::now`] has nodes alone.
    ///
    /// # Errors
    /// Where no node is called so.
    fn node<'a>(&'a self, name: &'a str) -> Answer<'a, Result<Arc<Fleet>, FleetError>>;

    /// Who used how much, until now.
    ///
    /// # Errors
    /// Where this source does not know.
    fn usage(&self, range: Range) -> Answer<'_, Result<Arc<FleetUsage>, FleetError>>;

    /// What went wrong, until now.
    ///
    /// # Errors
    /// Where this source does not know.
    fn events(&self, range: Range) -> Answer<'_, Result<Arc<FleetEvents>, FleetError>>;

    /// How all, or one node, did until now.
    ///
    /// # Errors
    /// Where no node is called so, or this source does not know.
    fn history<'a>(
        &'a self,
        range: Range,
        node: Option<&'a str>,
    ) -> Answer<'a, Result<Arc<FleetHistory>, FleetError>>;

    /// Waits until all that can be read now has been, where that comes bit by bit; not for longer
    /// than `patience`.
    fn settled(&self, patience: Duration) -> Answer<'_, ()> {
        let _ = patience;
        Box::pin(async {})
    }

    /// How many KiB were needed to read and have been let go of since the last call: much of it
    /// stays with the allocator.
    fn released_kib(&self) -> usize {
        0
    }

    /// Lets go of whatever is read from, and waits for that, but not for long.
    fn end(&self) -> Answer<'_, ()> {
        Box::pin(async {})
    }

    /// Where a node answers, as far as what was read last tells; `None` where no node is called so.
    fn address(&self, node: &str) -> Option<NodeAddress>;
}

/// How far back from now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    seconds: u32,
}

/// Where the metrics of a node are read, as the label `instance` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeAddress {
    /// A name or an address; an IPv6 address is without brackets.
    pub host: String,
    /// The port at which metrics are read, where that is told.
    pub port: Option<u16>,
}

/// Why a question about a fleet has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FleetError {
    /// The list of nodes has no such name.
    #[error("no node of the fleet is called '{0}'; /api/v1/fleet lists their names")]
    NoSuchNode(String),
    /// The source has nothing of the kind; the sentence says why, and what would have it.
    #[error("{0}")]
    NotAvailable(String),
    /// The range is too short or too long.
    #[error("range_s is {0}; use {least} to {most} seconds", least = Range::LEAST_S, most = Range::MOST_S)]
    Range(u64),
}

impl Range {
    /// The shortest, in seconds: a quarter of an hour.
    pub const LEAST_S: u32 = 900;
    /// The longest, in seconds: thirty days.
    pub const MOST_S: u32 = 30 * 86_400;

    /// # Errors
    /// Where it is too short or too long.
    pub fn new(seconds: u64) -> Result<Self, FleetError> {
        let fits = u32::try_from(seconds)
            .ok()
            .filter(|it| (Self::LEAST_S..=Self::MOST_S).contains(it));
        fits.map(|seconds| Self { seconds })
            .ok_or(FleetError::Range(seconds))
    }

    /// In seconds.
    pub fn seconds(self) -> u32 {
        self.seconds
    }
}
