//! Hosts that are read over ssh. Each has a hub, which gets its records from one connection.
//!
//! - [`node`] is a host with its state, [`connection`] an ssh process, [`follow`] keeps the
//!   connections established.
//! - [`now`], [`usage`], [`events`] and [`history`] combine the data of all hubs, [`nested`] serves
//!   a single host, and [`targets`] lists the hosts for Prometheus.

mod connection;
mod events;
mod follow;
mod history;
pub(crate) mod nested;
mod node;
mod now;
mod owners;
pub(crate) mod targets;
mod usage;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gpumon_fleet::{
    Answer, FleetError, FleetReader, NodeAddress, Range,
    hosts::{HostList, Ssh},
    model::{Fleet, FleetEvents, FleetHistory, FleetUsage},
};
use gpumon_probe::model::now_ms;
use tokio::{
    task::{JoinSet, spawn_blocking},
    time::{Instant, sleep, timeout},
};

use self::node::HostNode;

/// The time for which all viewers share a response.
const SHARED_FOR: Duration = Duration::from_millis(250);

/// The interval at which unused responses are released.
const TRIM_INTERVAL: Duration = Duration::from_secs(2);

/// The interval of the check whether all hosts have responded.
const LOOK: Duration = Duration::from_millis(20);

/// The hosts of a fleet, and how they are reached.
#[derive(Debug, Clone)]
pub struct HostsSettings {
    pub hosts: HostList,
    /// The ssh program of the system, with its options.
    pub ssh: Ssh,
    /// The program that starts ssh so that it ends with this process, which is gpumon itself, and
    /// its first arguments.
    pub tether: (PathBuf, Vec<String>),
    /// The sampling interval if no client requests a shorter one.
    pub interval: Duration,
}

/// Hosts that are read over ssh. The connections start with the first request, and last until this
/// value is dropped.
pub struct Hosts {
    nodes: Arc<[Arc<HostNode>]>,
    settings: Arc<HostsSettings>,
    following: Mutex<Option<Following>>,
    shared: Mutex<Option<(Instant, Arc<Fleet>)>>,
}

struct Following {
    since: Instant,
    /// The tasks of all connections, which end when the set is dropped.
    _tasks: JoinSet<()>,
}

impl Hosts {
    /// Returns hosts without connections.
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

    /// Returns the list of hosts as typed.
    pub fn list(&self) -> &HostList {
        &self.settings.hosts
    }

    /// Starts the connections to all hosts if this has not been done. Returns the time since the
    /// start.
    pub(crate) fn start(&self) -> Duration {
        let mut following = self
            .following
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let following = following.get_or_insert_with(|| {
            let mut tasks = JoinSet::new();
            let turns = follow::turns();
            for node in &*self.nodes {
                tasks.spawn(follow::follow(
                    Arc::clone(node),
                    Arc::clone(&self.settings),
                    Arc::clone(&turns),
                ));
                let hub = Arc::clone(&node.hub);
                tasks.spawn(async move { hub.end_buckets().await });
            }
            let of_nested = Arc::clone(&self.nodes);
            tasks.spawn(async move { trim(&of_nested).await });
            Following {
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
                .all(|node| node.is_fresh(now_ms()) || node.failed())
            {
                sleep(LOOK).await;
            }
        };
        // Hosts that have not responded by then are reported in their current state.
        let _ = timeout(patience, all).await;
    }

    async fn end_connections(&self) {
        self.nodes.iter().for_each(|node| node.end());
        let ended = async {
            while self.nodes.iter().any(|node| node.has_process()) {
                sleep(LOOK).await;
            }
        };
        let _ = timeout(connection::GRACE * 3, ended).await;
    }

    fn node_called(&self, name: &str) -> Result<&Arc<HostNode>, FleetError> {
        let found = self.nodes.iter().find(|node| node.host.name == name);
        found.ok_or_else(|| FleetError::NoSuchNode(name.to_owned()))
    }

    fn fleet(&self) -> Arc<Fleet> {
        let since_start = self.start();
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, fleet)) = &*shared
            && at.elapsed() < SHARED_FOR
        {
            return Arc::clone(fleet);
        }
        let fleet = Arc::new(now::fleet(&self.nodes, self.settings.interval, since_start));
        *shared = Some((Instant::now(), Arc::clone(&fleet)));
        fleet
    }

    /// Runs an expensive query outside the event loop.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&[Arc<HostNode>]) -> T + Send + 'static,
    ) -> Result<T, FleetError> {
        let nodes = Arc::clone(&self.nodes);
        let answer = spawn_blocking(move || question(&nodes)).await;
        answer.map_err(|error| {
            FleetError::NotAvailable(format!("the answer failed ({error}); report this as a bug"))
        })
    }
}

/// Releases unused responses about each host. This function never returns.
async fn trim(nodes: &[Arc<HostNode>]) {
    loop {
        sleep(TRIM_INTERVAL).await;
        nodes
            .iter()
            .filter_map(|node| node.nested.get())
            .for_each(|nested| (nested.trim)());
    }
}

impl FleetReader for Hosts {
    fn now(&self) -> Answer<'_, Arc<Fleet>> {
        Box::pin(async { self.fleet() })
    }

    fn node<'a>(&'a self, name: &'a str) -> Answer<'a, Result<Arc<Fleet>, FleetError>> {
        Box::pin(async {
            let since_start = self.start();
            let node = Arc::clone(self.node_called(name)?);
            Ok(Arc::new(now::fleet(
                &[node],
                self.settings.interval,
                since_start,
            )))
        })
    }

    fn usage(&self, range: Range) -> Answer<'_, Result<Arc<FleetUsage>, FleetError>> {
        Box::pin(async move {
            self.ask(move |nodes| Arc::new(usage::usage(nodes, range, now_ms())))
                .await
        })
    }

    fn events(&self, range: Range) -> Answer<'_, Result<Arc<FleetEvents>, FleetError>> {
        Box::pin(async move {
            self.ask(move |nodes| Arc::new(events::events(nodes, range, now_ms())))
                .await
        })
    }

    fn history<'a>(
        &'a self,
        range: Range,
        node: Option<&'a str>,
    ) -> Answer<'a, Result<Arc<FleetHistory>, FleetError>> {
        Box::pin(async move {
            let one = node
                .map(|name| self.node_called(name).cloned())
                .transpose()?;
            let of = move |nodes: &[Arc<HostNode>]| match one {
                Some(node) => {
                    history::history(&[Arc::clone(&node)], Some(&node.host.name), range, now_ms())
                }
                None => history::history(nodes, None, range, now_ms()),
            };
            self.ask(of).await.map(Arc::new)
        })
    }

    fn settled(&self, patience: Duration) -> Answer<'_, ()> {
        Box::pin(async move {
            self.start();
            self.wait_until_settled(patience).await;
        })
    }

    fn end(&self) -> Answer<'_, ()> {
        Box::pin(self.end_connections())
    }

    fn address(&self, node: &str) -> Option<NodeAddress> {
        let node = self.node_called(node).ok()?;
        Some(NodeAddress {
            host: node.host.name.clone(),
            port: None,
        })
    }
}
