//! Reading of a fleet from Prometheus or a server with the same HTTP API, such as Thanos, Mimir or
//! VictoriaMetrics.
//!
//! `query_table` lists the queries about the current state and how often they are sent. `client`
//! sends queries within limits, `answer` parses responses, `facts` extracts values from individual
//! series, and `assemble` combines them. `spans` reads data about time ranges.
//! [`PrometheusReader`] caches the results for all viewers.

mod answer;
mod assemble;
mod cached;
mod client;
mod current_fleet;
mod facts;
mod labels;
mod metrics;
mod query;
mod query_table;
mod settings;
mod spans;

use std::{collections::HashMap, hash::Hash, sync::Arc, time::Duration};

use cached::{CachedByKey, CachedValue, FreshValue};
use current_fleet::{CurrentFleetReader, FleetContext};
use labels::Target;
use query::{Source, build_exact_pattern, now_ms};
use spans::{TimeRangeResult, events, history, usage};

use crate::{
    model::{Fleet, FleetEvents, FleetHistory, FleetState, FleetUsage, READINGS, Resolution},
    source::{
        FleetBuilder, FleetError, FleetFuture, FleetReader, NewGpu, NewNode, NodeAddress, Range,
    },
    summary::Rows,
};

pub use settings::{Authorization, ClientCertificate, Settings, SettingsError};

/// The maximum time to wait for new data if older data can be shown instead.
const UPDATE_TIMEOUT: Duration = Duration::from_secs(2);

/// The maximum number of nodes that are read individually when the fleet lists only nodes.
const MAX_CACHED_NODES: usize = 32;

/// The maximum number of time ranges whose results are cached.
const MAX_CACHED_RANGES: usize = 16;
const MAX_CACHED_HISTORIES: usize = 64;

/// A fleet reader for Prometheus, shared by all viewers. It sends queries only on request.
pub struct PrometheusReader {
    source: Arc<Source>,
    now: Arc<CurrentFleetReader>,
    fleet: Arc<CachedValue<Fleet>>,
    /// The fleets of individual nodes, which are read separately when the main fleet lists only
    /// nodes.
    nodes: CachedByKey<String, Fleet>,
    node_readers: std::sync::Mutex<HashMap<String, Arc<CurrentFleetReader>>>,
    usage: CachedByKey<Range, FleetUsage>,
    events: CachedByKey<Range, FleetEvents>,
    history: CachedByKey<(Range, Option<String>), FleetHistory>,
}

impl PrometheusReader {
    /// Creates a reader without sending any queries.
    ///
    /// # Errors
    /// Returns the problem with the settings, or with a file that they refer to, and its remedy.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        let source = Arc::new(Source::new(settings)?);
        Ok(Self {
            now: Arc::new(CurrentFleetReader::new(Arc::clone(&source), "", None)),
            source,
            fleet: Arc::default(),
            nodes: CachedByKey::new(MAX_CACHED_NODES),
            node_readers: std::sync::Mutex::default(),
            usage: CachedByKey::new(MAX_CACHED_RANGES),
            events: CachedByKey::new(MAX_CACHED_RANGES),
            history: CachedByKey::new(MAX_CACHED_HISTORIES),
        })
    }

    fn wait_limit(&self) -> impl Fn(bool) -> Duration + use<> {
        let limit = self.source.settings.timeout;
        move |has_some| {
            if has_some {
                UPDATE_TIMEOUT.min(limit)
            } else {
                limit
            }
        }
    }

    async fn read_current_fleet(
        &self,
        cached: &Arc<CachedValue<Fleet>>,
        reader: &Arc<CurrentFleetReader>,
    ) -> Arc<Fleet> {
        let reading = Arc::clone(reader);
        let fleet = cached
            .get_or_read(self.wait_limit(), |before| reading.read(before))
            .await;
        match fleet {
            None => Arc::new(reader.build_slow_fleet(None)),
            Some(fleet) if is_fleet_outdated(&fleet, self.source.settings.timeout) => {
                Arc::new(reader.build_slow_fleet(Some(&fleet)))
            }
            Some(fleet) => fleet,
        }
    }

    async fn read_without_waiting(&self) -> Arc<Fleet> {
        let (last, flight) = self
            .fleet
            .get_last_and_refresh(|before| Arc::clone(&self.now).read(before));
        match last {
            Some(fleet) if flight.is_none() => fleet,
            Some(fleet) if matches!(fleet.state, FleetState::Current | FleetState::Partial) => {
                Arc::new(Fleet {
                    state: FleetState::Outdated,
                    problems: Vec::new(),
                    ..(*fleet).clone()
                })
            }
            // There is no earlier data, or it was already outdated. It is therefore better to wait
            // for the new read.
            _ => self.read_current_fleet(&self.fleet, &self.now).await,
        }
    }

    /// Returns the additional results from the last time the fleet was read.
    ///
    /// # Errors
    /// Returns the fleet's problems if no GPUs are found.
    async fn read_context(&self) -> Result<FleetContext, Vec<String>> {
        let known = self.now.last_context();
        if !known.families.is_empty() {
            return Ok(known);
        }
        let fleet = self.read_current_fleet(&self.fleet, &self.now).await;
        let known = self.now.last_context();
        if known.families.is_empty() {
            Err(fleet.problems.clone())
        } else {
            Ok(known)
        }
    }

    /// Reads data about a time range. On failure, returns `empty` with the reason as a problem.
    async fn read_cached_range<K: Eq + Hash + Clone, T: TimeRangeResult, F>(
        &self,
        cache: &CachedByKey<K, T>,
        key: K,
        empty: impl Fn() -> T,
        read: impl FnOnce(FleetContext, Option<Arc<T>>) -> F,
    ) -> Arc<T>
    where
        F: Future<Output = FreshValue<T>> + Send + 'static,
    {
        let with_problems = |problems| {
            let mut value = empty();
            *value.state_and_problems().1 = problems;
            Arc::new(value)
        };
        let known = match self.read_context().await {
            Ok(known) => known,
            Err(problems) => return with_problems(problems),
        };
        let cached = cache.get_or_create_slot(key);
        let value = cached.get_or_read(self.wait_limit(), |before| read(known, before));
        value
            .await
            .unwrap_or_else(|| with_problems(vec![self.source.timeout_error().to_string()]))
    }

    /// Returns the targets that belong to `node`.
    fn find_targets(&self, node: &str) -> Result<Vec<Arc<Target>>, FleetError> {
        let targets = self
            .now
            .last_context()
            .nodes
            .find_targets(node)
            .map(<[_]>::to_vec);
        targets.ok_or_else(|| FleetError::NoSuchNode(gpumon_probe::owner::clean_name(node)))
    }

    async fn read_node(&self, node: &str) -> Result<Arc<Fleet>, FleetError> {
        let fleet = self.read_current_fleet(&self.fleet, &self.now).await;
        let targets = self.find_targets(node)?;
        if fleet.resolution == Resolution::Gpu {
            return Ok(Arc::new(extract_node(&fleet, node)));
        }
        let reader = {
            let mut readers = self
                .node_readers
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            if readers.len() >= MAX_CACHED_NODES && !readers.contains_key(node) {
                readers.clear();
            }
            let new = || {
                Arc::new(CurrentFleetReader::new(
                    Arc::clone(&self.source),
                    &build_matchers(&targets),
                    Some(Resolution::Gpu),
                ))
            };
            Arc::clone(readers.entry(node.to_owned()).or_insert_with(new))
        };
        let reported = self
            .read_current_fleet(&self.nodes.get_or_create_slot(node.to_owned()), &reader)
            .await;
        Ok(Arc::new(extract_node(&reported, node)))
    }
}

impl FleetReader for PrometheusReader {
    fn fetch_current_fleet(&self) -> FleetFuture<'_, Arc<Fleet>> {
        Box::pin(self.read_current_fleet(&self.fleet, &self.now))
    }

    fn get_last_known_fleet(&self) -> FleetFuture<'_, Arc<Fleet>> {
        Box::pin(self.read_without_waiting())
    }

    fn fetch_node<'a>(&'a self, name: &'a str) -> FleetFuture<'a, Result<Arc<Fleet>, FleetError>> {
        Box::pin(self.read_node(name))
    }

    fn fetch_usage(&self, range: Range) -> FleetFuture<'_, Result<Arc<FleetUsage>, FleetError>> {
        Box::pin(async move {
            let source = &self.source;
            let empty = || {
                let to_ms = now_ms();
                FleetUsage::new_loading(range.start_ms(to_ms), to_ms)
            };
            let read =
                |reported, before| usage::read_usage(Arc::clone(source), reported, range, before);
            Ok(self
                .read_cached_range(&self.usage, range, empty, read)
                .await)
        })
    }

    fn fetch_events(&self, range: Range) -> FleetFuture<'_, Result<Arc<FleetEvents>, FleetError>> {
        Box::pin(async move {
            let source = &self.source;
            let empty = || {
                let to_ms = now_ms();
                FleetEvents::new_loading(range.start_ms(to_ms), to_ms)
            };
            let read =
                |reported, before| events::read_events(Arc::clone(source), reported, range, before);
            Ok(self
                .read_cached_range(&self.events, range, empty, read)
                .await)
        })
    }

    fn fetch_history<'a>(
        &'a self,
        range: Range,
        node: Option<&'a str>,
    ) -> FleetFuture<'a, Result<Arc<FleetHistory>, FleetError>> {
        Box::pin(async move {
            let name = node.map(str::to_owned);
            let is_known = self.read_context().await.is_ok();
            let node = match node.filter(|_| is_known) {
                Some(node) => Some((node.to_owned(), build_matchers(&self.find_targets(node)?))),
                None => None,
            };
            let empty = || history::empty_history(name.clone());
            let read = |reported, before| {
                history::read_history(Arc::clone(&self.source), reported, (range, node), before)
            };
            let key = (range, name.clone());
            Ok(self
                .read_cached_range(&self.history, key, empty, read)
                .await)
        })
    }

    fn take_released_memory_kib(&self) -> usize {
        self.source.take_released_memory_kib()
    }

    fn find_address(&self, node: &str) -> Option<NodeAddress> {
        self.find_targets(node)
            .ok()?
            .first()
            .map(|target| target.to_node_address())
    }
}

/// Returns matchers that select the series of a node's targets.
fn build_matchers(targets: &[Arc<Target>]) -> String {
    let instances = build_exact_pattern(targets.iter().map(|target| &*target.instance));
    let cluster = targets
        .iter()
        .map(|target| &*target.cluster)
        .find(|cluster| !cluster.is_empty());
    let cluster = cluster.map(|cluster| format!(",cluster={}", query::quote_text(cluster)));
    format!("instance=~{instances}{}", cluster.unwrap_or_default())
}

/// Returns `true` if the data is too old to be shown as current, considering how often it is
/// refreshed.
fn is_fleet_outdated(fleet: &Fleet, limit: Duration) -> bool {
    let age = now_ms().saturating_sub(fleet.at_ms);
    let longest = Duration::from_secs(u64::from(fleet.refresh_s) * 2) + limit;
    matches!(fleet.state, FleetState::Current | FleetState::Partial)
        && age > longest.as_millis() as u64
}

/// Returns the part of a fleet that belongs to the node `name`. The result is empty if the node has
/// disappeared.
fn extract_node(fleet: &Fleet, name: &str) -> Fleet {
    let mut builder = FleetBuilder::new(Fleet {
        state: fleet.state,
        problems: fleet.problems.clone(),
        resolution: fleet.resolution,
        missing: fleet.missing.clone(),
        ..Fleet::new_unread(fleet.source.clone(), fleet.at_ms, fleet.refresh_s)
    });
    let Fleet { nodes, gpus, .. } = fleet;
    let Some(at) = nodes.name.iter().position(|known| known == name) else {
        return builder.finish();
    };
    let place = at as u32;
    let node = builder.add_node(NewNode {
        name: name.to_owned(),
        health: nodes.health[at],
        reason: nodes.reasons.get(&place).cloned(),
        gpus: nodes.gpus[at],
        unopenable: nodes.unopenable.get(&place).cloned(),
    });
    let rows = Rows::new(fleet);
    for row in (0..gpus.node.len()).filter(|row| gpus.node[*row] == place) {
        let gpu = builder.add_gpu(
            node,
            NewGpu {
                index: gpus.index[row],
                model: rows.model_name(row),
                health: gpus.health[row],
                readings: READINGS.map(|id| rows.value(id, row)),
                processes: gpus.processes[row],
                idle_holding_s: rows.idle_with_memory_s(row),
            },
        );
        for owner in rows.list_owners(row) {
            builder.add_owner(gpu, (*owner).clone());
        }
        for condition in rows.list_conditions(row) {
            builder.add_condition(gpu, condition.kind.clone(), condition.severity);
        }
    }
    builder.finish()
}

#[cfg(test)]
mod tests;
