//! The interface that all sources of fleet data implement, and the builder with which they assemble
//! a fleet.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use futures_util::future::BoxFuture;
use thiserror::Error;

use crate::model::{
    Fleet, FleetCondition, FleetEvents, FleetHistory, FleetHold, FleetOwner, FleetUsage, GpuHealth,
    MEMORY_TOTAL, NodeHealth, POWER_LIMIT, READINGS,
};

/// A future that resolves to the reader's response within the reader's time limits.
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
    fn take_released_memory_kib(&self) -> usize {
        0
    }

    /// Closes all connections of the source, and waits only briefly until they are closed.
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
    /// The source does not provide this data. The text contains the reason and names a source that
    /// provides it.
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

    /// Returns the start of a range that ends at `end_ms`, in milliseconds since 1970.
    pub fn start_ms(self, end_ms: u64) -> u64 {
        end_ms.saturating_sub(u64::from(self.seconds) * 1000)
    }
}

/// A builder that assembles a fleet from its nodes and GPUs.
#[derive(Debug)]
pub struct FleetBuilder {
    fleet: Fleet,
    models: HashMap<String, u32>,
    holders: BTreeMap<FleetOwner, BTreeSet<u32>>,
}

/// A node to add.
#[derive(Debug)]
pub struct NewNode {
    pub name: String,
    pub health: NodeHealth,
    /// The reason why the node is not up.
    pub reason: Option<String>,
    /// The number of GPUs in the node.
    pub gpus: u32,
    /// The reason why the node's page cannot be opened, or `None` if it can be opened.
    pub unopenable: Option<String>,
}

/// A GPU to add to the fleet. If only a node's sums are known, the entry represents all GPUs of the
/// node.
#[derive(Debug, Clone, Copy)]
pub struct NewGpu<'a> {
    /// The GPU's NVML index.
    pub index: u32,
    pub model: Option<&'a str>,
    pub health: GpuHealth,
    /// The readings, in the order of [`READINGS`].
    pub readings: [Option<f64>; READINGS.len()],
    /// The number of processes that use the GPU.
    pub processes: Option<u32>,
    /// How long the GPU has been idle although its memory is in use, in seconds.
    pub idle_holding_s: Option<f64>,
}

impl FleetBuilder {
    /// Creates a builder for a fleet without nodes.
    pub fn new(mut fleet: Fleet) -> Self {
        fleet.gpus.readings = READINGS.map(|id| (id.to_owned(), Vec::new())).into();
        Self {
            fleet,
            models: HashMap::new(),
            holders: BTreeMap::new(),
        }
    }

    /// Adds a node and returns its position.
    pub fn add_node(&mut self, node: NewNode) -> u32 {
        let nodes = &mut self.fleet.nodes;
        let place = nodes.name.len() as u32;
        nodes.name.push(node.name);
        nodes.health.push(node.health);
        nodes.gpus.push(node.gpus);
        let reason = node.reason.map(|reason| (place, reason));
        nodes.reasons.extend(reason);
        let unopenable = node.unopenable.map(|why| (place, why));
        nodes.unopenable.extend(unopenable);
        place
    }

    /// Adds a GPU to `node` and returns its position. If the GPU does not respond, only its total
    /// memory and power limit are kept.
    pub fn add_gpu(&mut self, node: u32, gpu: NewGpu<'_>) -> u32 {
        let is_ok = gpu.health == GpuHealth::Ok;
        let gpus = &mut self.fleet.gpus;
        let place = gpus.node.len() as u32;
        gpus.node.push(node);
        gpus.index.push(gpu.index);
        gpus.model.push(gpu.model.map(|name| {
            *self.models.entry(name.to_owned()).or_insert_with(|| {
                gpus.models.push(name.to_owned());
                gpus.models.len() as u32 - 1
            })
        }));
        gpus.health.push(gpu.health);
        for (id, value) in READINGS.into_iter().zip(gpu.readings) {
            let is_limit = id == MEMORY_TOTAL || id == POWER_LIMIT;
            if let Some(values) = gpus.readings.get_mut(id) {
                values.push(value.filter(|_| is_ok || is_limit));
            }
        }
        gpus.processes.push(gpu.processes.filter(|_| is_ok));
        let idle_s = gpu.idle_holding_s.filter(|_| is_ok);
        gpus.idle_holding_s.push(idle_s);
        place
    }

    /// Records that `owner` uses the GPU at position `gpu`.
    pub fn add_owner(&mut self, gpu: u32, owner: FleetOwner) {
        self.holders.entry(owner).or_default().insert(gpu);
    }

    pub fn add_condition(&mut self, gpu: u32, kind: String, severity: u8) {
        self.fleet.conditions.push(FleetCondition {
            gpu,
            kind,
            severity,
        });
    }

    /// Computes all derived values, such as states, ranks, and sums, and returns the finished
    /// fleet.
    pub fn finish(mut self) -> Fleet {
        for (owner, gpus) in self.holders {
            let place = self.fleet.owners.len() as u32;
            self.fleet.owners.push(owner);
            let holds = gpus.into_iter().map(|gpu| FleetHold { gpu, owner: place });
            self.fleet.holds.extend(holds);
        }
        self.fleet
            .holds
            .sort_unstable_by_key(|hold| (hold.gpu, hold.owner));
        self.fleet.derive_values();
        self.fleet
    }
}
