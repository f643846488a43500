//! Hosts that are read over ssh. Each host has a hub, which receives the records of one connection.
//!
//! - [`node`] contains a host and its state, and [`connection`] keeps an ssh process running that
//!   reads it.
//! - [`current_fleet`] and [`history`] combine the data of all hubs. [`routes`] serves a single
//!   host, and lists the hosts for Prometheus.

mod connection;
mod current_fleet;
mod history;
mod node;
pub(crate) mod routes;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use gpumon_fleet::{
    FleetError, FleetFuture, FleetReader, NodeAddress, Range,
    hosts::{HostList, Ssh},
    model::{Fleet, FleetEvents, FleetHistory, FleetUsage},
};
use gpumon_probe::model::now_ms;
use tokio::{
    task::{JoinSet, spawn_blocking},
    time::{Instant, sleep, timeout},
};

use self::node::HostNode;
use crate::lock;

/// The time for which a response is reused for all viewers.
const CACHE_TIME: Duration = Duration::from_millis(250);

/// The interval at which unused responses are released.
const TRIM_INTERVAL: Duration = Duration::from_secs(2);

/// The interval at which a request checks whether all hosts have responded.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The hosts of a fleet, and the settings for reaching them.
#[derive(Debug, Clone)]
pub struct HostsSettings {
    pub hosts: HostList,
    /// The system's ssh program, with its options.
    pub ssh: Ssh,
    /// The program that starts ssh, and its first arguments. The program is gpumon itself. It
    /// ensures that ssh ends together with this process.
    pub tether: (PathBuf, Vec<String>),
    /// The sampling interval if no client requests a shorter one.
    pub interval: Duration,
}

/// Hosts that are read over ssh. The connections are started by the first request, and last until
/// this value is dropped.
pub struct Hosts {
    nodes: Arc<[Arc<HostNode>]>,
    settings: Arc<HostsSettings>,
    following: Mutex<Option<ActiveConnections>>,
    shared: Mutex<Option<(Instant, Arc<Fleet>)>>,
}

struct ActiveConnections {
    since: Instant,
    /// The tasks of all connections, which end when the set is dropped.
    _tasks: JoinSet<()>,
}

impl Hosts {
    /// Creates the hosts, without connecting to them.
    pub fn new(settings: HostsSettings) -> Arc<Self> {
        let hosts = settings.hosts.hosts().iter();
        let nodes = hosts
            .map(|host| Arc::new(HostNode::new(host.clone(), settings.interval)))
            .collect();
        Arc::new(Self {
            nodes,
            settings: Arc::new(settings),
            following: Mutex::default(),
            shared: Mutex::default(),
        })
    }

    /// Returns the list of hosts as the user typed it.
    pub fn host_list(&self) -> &HostList {
        &self.settings.hosts
    }

    /// Starts the connections to all hosts, unless they were already started. Returns the time
    /// since the start.
    pub(crate) fn start_connections(&self) -> Duration {
        let mut following = lock::lock(&self.following);
        let following = following.get_or_insert_with(|| {
            let mut tasks = JoinSet::new();
            let turns = connection::new_connection_limit();
            for node in &*self.nodes {
                tasks.spawn(connection::keep_connected(
                    Arc::clone(node),
                    Arc::clone(&self.settings),
                    Arc::clone(&turns),
                ));
                let hub = Arc::clone(&node.hub);
                tasks.spawn(async move { hub.end_buckets_regularly().await });
            }
            let of_nested = Arc::clone(&self.nodes);
            tasks.spawn(async move { release_unused_responses_regularly(&of_nested).await });
            ActiveConnections {
                since: Instant::now(),
                _tasks: tasks,
            }
        });
        following.since.elapsed()
    }

    async fn wait_until_settled(&self, patience: Duration) {
        let all = async {
            while !self
                .nodes
                .iter()
                .all(|node| node.hub.is_fresh(now_ms()) || node.has_failed())
            {
                sleep(CHECK_INTERVAL).await;
            }
        };
        // Hosts that have not responded within this time are reported in their current state.
        let _ = timeout(patience, all).await;
    }

    async fn end_connections(&self) {
        self.nodes.iter().for_each(|node| node.stop_reading());
        let ended = async {
            while self.nodes.iter().any(|node| node.has_process()) {
                sleep(CHECK_INTERVAL).await;
            }
        };
        let _ = timeout(connection::GRACE_PERIOD * 3, ended).await;
    }

    fn find_node(&self, name: &str) -> Result<&Arc<HostNode>, FleetError> {
        let found = self.nodes.iter().find(|node| node.host.name == name);
        found.ok_or_else(|| FleetError::NoSuchNode(name.to_owned()))
    }

    fn get_or_build_fleet(&self) -> Arc<Fleet> {
        let since_start = self.start_connections();
        let mut shared = lock::lock(&self.shared);
        if let Some((at, fleet)) = &*shared
            && at.elapsed() < CACHE_TIME
        {
            return Arc::clone(fleet);
        }
        let fleet = Arc::new(current_fleet::build_fleet(
            &self.nodes,
            self.settings.interval,
            since_start,
        ));
        *shared = Some((Instant::now(), Arc::clone(&fleet)));
        fleet
    }

    /// Runs an expensive query outside the event loop.
    async fn run_query<T: Send + 'static>(
        &self,
        question: impl FnOnce(&[Arc<HostNode>]) -> T + Send + 'static,
    ) -> Result<T, FleetError> {
        let nodes = Arc::clone(&self.nodes);
        let answer = spawn_blocking(move || question(&nodes)).await;
        answer.map_err(|error| {
            FleetError::NotAvailable(format!(
                "the request failed ({error}); report this as a bug"
            ))
        })
    }
}

/// Regularly releases each host's unused responses. This function never returns.
async fn release_unused_responses_regularly(nodes: &[Arc<HostNode>]) {
    loop {
        sleep(TRIM_INTERVAL).await;
        nodes
            .iter()
            .filter_map(|node| node.nested.get())
            .for_each(|nested| (nested.trim)());
    }
}

impl FleetReader for Hosts {
    fn fetch_current_fleet(&self) -> FleetFuture<'_, Arc<Fleet>> {
        Box::pin(async { self.get_or_build_fleet() })
    }

    fn fetch_node<'a>(&'a self, name: &'a str) -> FleetFuture<'a, Result<Arc<Fleet>, FleetError>> {
        Box::pin(async {
            let since_start = self.start_connections();
            let node = Arc::clone(self.find_node(name)?);
            Ok(Arc::new(current_fleet::build_fleet(
                &[node],
                self.settings.interval,
                since_start,
            )))
        })
    }

    fn fetch_usage(&self, range: Range) -> FleetFuture<'_, Result<Arc<FleetUsage>, FleetError>> {
        Box::pin(self.run_query(move |nodes| Arc::new(history::sum_usage(nodes, range, now_ms()))))
    }

    fn fetch_events(&self, range: Range) -> FleetFuture<'_, Result<Arc<FleetEvents>, FleetError>> {
        Box::pin(
            self.run_query(move |nodes| Arc::new(history::list_events(nodes, range, now_ms()))),
        )
    }

    fn fetch_history<'a>(
        &'a self,
        range: Range,
        node: Option<&'a str>,
    ) -> FleetFuture<'a, Result<Arc<FleetHistory>, FleetError>> {
        Box::pin(async move {
            let one = node.map(|name| self.find_node(name).cloned()).transpose()?;
            let of = move |nodes: &[Arc<HostNode>]| match one {
                Some(node) => history::build_history(
                    &[Arc::clone(&node)],
                    Some(&node.host.name),
                    range,
                    now_ms(),
                ),
                None => history::build_history(nodes, None, range, now_ms()),
            };
            self.run_query(of).await.map(Arc::new)
        })
    }

    fn wait_until_settled(&self, patience: Duration) -> FleetFuture<'_, ()> {
        Box::pin(async move {
            self.start_connections();
            self.wait_until_settled(patience).await;
        })
    }

    fn close(&self) -> FleetFuture<'_, ()> {
        Box::pin(self.end_connections())
    }

    fn find_address(&self, node: &str) -> Option<NodeAddress> {
        let node = self.find_node(node).ok()?;
        Some(NodeAddress {
            host: node.host.name.clone(),
            port: None,
        })
    }
}
