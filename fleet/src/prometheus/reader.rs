//! The reader of a fleet from Prometheus, shared by all viewers.

use std::{collections::HashMap, hash::Hash, sync::Arc, time::Duration};

use super::{
    ask::Source,
    cached::{Cached, CachedByKey, Fresh},
    client::QueryError,
    now::{NowReader, Told},
    promql::any_of,
    settings::{Settings, SettingsError},
    spans::{Span, events, history, usage},
    target::Target,
};
use crate::{
    builder::{FleetBuilder, NewGpu, NewNode},
    model::{Fleet, FleetEvents, FleetHistory, FleetState, FleetUsage, READINGS, Resolution},
    reader::{Answer, FleetError, FleetReader, NodeAddress, Range},
    rows::Rows,
};

/// How long to wait for new data if older data can be shown.
const PATIENCE: Duration = Duration::from_secs(2);

/// The maximum number of nodes that are read individually, if the fleet lists only nodes.
const MOST_NODES: usize = 32;

/// The maximum number of cached time ranges.
const MOST_RANGES: usize = 16;
const MOST_HISTORIES: usize = 64;

/// A reader of a fleet from Prometheus. It sends queries only on request.
pub struct PrometheusReader {
    source: Arc<Source>,
    now: Arc<NowReader>,
    fleet: Arc<Cached<Fleet>>,
    /// The nodes that are read individually, each with its own reader, if the fleet lists only
    /// nodes.
    nodes: CachedByKey<String, Fleet>,
    node_readers: std::sync::Mutex<HashMap<String, Arc<NowReader>>>,
    usage: CachedByKey<Range, FleetUsage>,
    events: CachedByKey<Range, FleetEvents>,
    history: CachedByKey<(Range, Option<String>), FleetHistory>,
}

impl PrometheusReader {
    /// Creates a reader without sending any query.
    ///
    /// # Errors
    /// Returns the problem of the settings, or of a file that they name, and its remedy.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        let source = Arc::new(Source::new(settings)?);
        Ok(Self {
            now: Arc::new(NowReader::new(Arc::clone(&source), "", None)),
            source,
            fleet: Arc::default(),
            nodes: CachedByKey::new(MOST_NODES),
            node_readers: std::sync::Mutex::default(),
            usage: CachedByKey::new(MOST_RANGES),
            events: CachedByKey::new(MOST_RANGES),
            history: CachedByKey::new(MOST_HISTORIES),
        })
    }

    fn patience(&self) -> impl Fn(bool) -> Duration + use<> {
        let limit = self.source.settings.timeout;
        move |has_some| if has_some { PATIENCE.min(limit) } else { limit }
    }

    async fn read_now(&self, cached: &Arc<Cached<Fleet>>, reader: &Arc<NowReader>) -> Arc<Fleet> {
        let reading = Arc::clone(reader);
        let fleet = cached
            .get(self.patience(), |before| reading.read(before))
            .await;
        match fleet {
            None => Arc::new(reader.slow(None)),
            Some(fleet) if is_late(&fleet, self.source.settings.timeout) => {
                Arc::new(reader.slow(Some(&fleet)))
            }
            Some(fleet) => fleet,
        }
    }

    async fn read_at_once(&self) -> Arc<Fleet> {
        let (last, flight) = self.fleet.last(|before| Arc::clone(&self.now).read(before));
        match last {
            Some(fleet) if flight.is_none() => fleet,
            Some(fleet) if matches!(fleet.state, FleetState::Current | FleetState::Partial) => {
                Arc::new(Fleet {
                    state: FleetState::Outdated,
                    problems: Vec::new(),
                    ..(*fleet).clone()
                })
            }
            // After a failed reading, the new one is worth waiting for.
            _ => self.read_now(&self.fleet, &self.now).await,
        }
    }

    /// Returns the further results of the last reading.
    ///
    /// # Errors
    /// Returns the problems of a fleet without GPUs.
    async fn read_known(&self) -> Result<Told, Vec<String>> {
        let known = self.now.told();
        if !known.families.is_none() {
            return Ok(known);
        }
        let fleet = self.read_now(&self.fleet, &self.now).await;
        let known = self.now.told();
        if known.families.is_none() {
            Err(fleet.problems.clone())
        } else {
            Ok(known)
        }
    }

    /// Reads data about a time range. If that is not possible, `empty` is returned with the reason.
    async fn read_span<K: Eq + Hash + Clone, T: Span, F>(
        &self,
        cache: &CachedByKey<K, T>,
        key: K,
        empty: impl Fn() -> T,
        read: impl FnOnce(Told, Option<Arc<T>>) -> F,
    ) -> Arc<T>
    where
        F: Future<Output = Fresh<T>> + Send + 'static,
    {
        let with_problems = |problems| {
            let mut value = empty();
            *value.state_and_problems().1 = problems;
            Arc::new(value)
        };
        let known = match self.read_known().await {
            Ok(known) => known,
            Err(problems) => return with_problems(problems),
        };
        let cached = cache.of(key);
        let value = cached.get(self.patience(), |before| read(known, before));
        value.await.unwrap_or_else(|| {
            let (address, limit) = (
                self.source.address().to_owned(),
                self.source.settings.timeout,
            );
            with_problems(vec![QueryError::Slow { address, limit }.to_string()])
        })
    }

    /// Returns the targets of a node.
    fn targets(&self, node: &str) -> Result<Vec<Arc<Target>>, FleetError> {
        let targets = self.now.told().nodes.targets_of(node).map(<[_]>::to_vec);
        targets.ok_or_else(|| FleetError::NoSuchNode(gpumon_probe::owner::clean_name(node)))
    }

    async fn read_node(&self, node: &str) -> Result<Arc<Fleet>, FleetError> {
        let fleet = self.read_now(&self.fleet, &self.now).await;
        let targets = self.targets(node)?;
        if fleet.resolution == Resolution::Gpu {
            return Ok(Arc::new(one_node(&fleet, node)));
        }
        let reader = {
            let mut readers = self
                .node_readers
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            if readers.len() >= MOST_NODES && !readers.contains_key(node) {
                readers.clear();
            }
            let new = || {
                Arc::new(NowReader::new(
                    Arc::clone(&self.source),
                    &matchers(&targets),
                    Some(Resolution::Gpu),
                ))
            };
            Arc::clone(readers.entry(node.to_owned()).or_insert_with(new))
        };
        let told = self
            .read_now(&self.nodes.of(node.to_owned()), &reader)
            .await;
        Ok(Arc::new(one_node(&told, node)))
    }
}

impl FleetReader for PrometheusReader {
    fn now(&self) -> Answer<'_, Arc<Fleet>> {
        Box::pin(self.read_now(&self.fleet, &self.now))
    }

    fn at_once(&self) -> Answer<'_, Arc<Fleet>> {
        Box::pin(self.read_at_once())
    }

    fn node<'a>(&'a self, name: &'a str) -> Answer<'a, Result<Arc<Fleet>, FleetError>> {
        Box::pin(self.read_node(name))
    }

    fn usage(&self, range: Range) -> Answer<'_, Result<Arc<FleetUsage>, FleetError>> {
        Box::pin(async move {
            let source = &self.source;
            let empty = || usage::nothing(source, range);
            let read = |told, before| usage::read(Arc::clone(source), told, range, before);
            Ok(self.read_span(&self.usage, range, empty, read).await)
        })
    }

    fn events(&self, range: Range) -> Answer<'_, Result<Arc<FleetEvents>, FleetError>> {
        Box::pin(async move {
            let source = &self.source;
            let empty = || events::nothing(source, range);
            let read = |told, before| events::read(Arc::clone(source), told, range, before);
            Ok(self.read_span(&self.events, range, empty, read).await)
        })
    }

    fn history<'a>(
        &'a self,
        range: Range,
        node: Option<&'a str>,
    ) -> Answer<'a, Result<Arc<FleetHistory>, FleetError>> {
        Box::pin(async move {
            let name = node.map(str::to_owned);
            let is_known = self.read_known().await.is_ok();
            let node = match node.filter(|_| is_known) {
                Some(node) => Some((node.to_owned(), matchers(&self.targets(node)?))),
                None => None,
            };
            let empty = || history::nothing(name.clone());
            let read =
                |told, before| history::read(Arc::clone(&self.source), told, (range, node), before);
            let key = (range, name.clone());
            Ok(self.read_span(&self.history, key, empty, read).await)
        })
    }

    fn released_kib(&self) -> usize {
        self.source.released_kib()
    }

    fn address(&self, node: &str) -> Option<NodeAddress> {
        self.targets(node)
            .ok()?
            .first()
            .map(|target| target.address())
    }
}

/// Returns the matchers of the series of a node.
pub(super) fn matchers(targets: &[Arc<Target>]) -> String {
    let instances = any_of(targets.iter().map(|target| &*target.instance));
    let cluster = targets
        .iter()
        .map(|target| &*target.cluster)
        .find(|cluster| !cluster.is_empty());
    let cluster = cluster.map(|cluster| format!(",cluster={}", super::promql::quoted(cluster)));
    format!("instance=~{instances}{}", cluster.unwrap_or_default())
}

/// Returns `true` if the data is older than a reader that fails would leave unmarked.
fn is_late(fleet: &Fleet, limit: Duration) -> bool {
    let age = super::ask::now_ms().saturating_sub(fleet.at_ms);
    let longest = Duration::from_secs(u64::from(fleet.refresh_s) * 2) + limit;
    matches!(fleet.state, FleetState::Current | FleetState::Partial)
        && age > longest.as_millis() as u64
}

/// Returns the part of a fleet that belongs to one node. The result is empty if the node is gone.
fn one_node(fleet: &Fleet, name: &str) -> Fleet {
    let mut builder = FleetBuilder::new(Fleet {
        state: fleet.state,
        problems: fleet.problems.clone(),
        resolution: fleet.resolution,
        missing: fleet.missing.clone(),
        ..Fleet::unread(fleet.source.clone(), fleet.at_ms, fleet.refresh_s)
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
                idle_holding_s: rows.idle_s(row),
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
