//! A fleet, for whoever shows it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use super::{
    ask::Source,
    cached::{Cached, CachedByKey},
    client::QueryError,
    now::{NowReader, Told},
    promql::any_of,
    settings::{Settings, SettingsError},
    spans::{Span, events, history, usage},
    target::Target,
};
use crate::{
    model::{
        Fleet, FleetCondition, FleetEvents, FleetGpus, FleetHistory, FleetHold, FleetNodes,
        FleetState, FleetUsage, Resolution,
    },
    reader::{Answer, FleetError, FleetReader, NodeAddress, Range},
};

/// How long is waited for what is new where there is something to show.
const PATIENCE: Duration = Duration::from_secs(2);

/// Nodes that are open at a time, beside a fleet of which only nodes are read.
const MOST_NODES: usize = 32;

/// Ranges that people choose, and nodes of which they see them.
const MOST_RANGES: usize = 16;
const MOST_HISTORIES: usize = 64;

/// Reads a fleet from Prometheus, while somebody asks.
pub struct PrometheusReader {
    source: Arc<Source>,
    now: Arc<NowReader>,
    fleet: Arc<Cached<Fleet>>,
    /// Each with its readers, where GPUs are not read otherwise.
    nodes: CachedByKey<String, Fleet>,
    node_readers: std::sync::Mutex<HashMap<String, Arc<NowReader>>>,
    usage: CachedByKey<Range, FleetUsage>,
    events: CachedByKey<Range, FleetEvents>,
    history: CachedByKey<(Range, Option<String>), FleetHistory>,
}

impl PrometheusReader {
    /// Asks nothing yet.
    ///
    /// # Errors
    /// What is wrong with the settings, or with a file that they name, and the cure.
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
            // One that failed last time may be waited for.
            _ => self.read_now(&self.fleet, &self.now).await,
        }
    }

    /// What the fleet as it is now tells besides; `nothing` with its problems where it tells of no GPUs.
    async fn told<T: Span>(&self, nothing: impl FnOnce() -> T) -> Result<Told, Arc<T>> {
        let told = self.now.told();
        if !told.families.is_none() {
            return Ok(told);
        }
        let fleet = self.read_now(&self.fleet, &self.now).await;
        let told = self.now.told();
        if told.families.is_none() {
            return Err(marked(nothing(), fleet.problems.clone()));
        }
        Ok(told)
    }

    fn slow<T: Span>(&self, nothing: T) -> Arc<T> {
        let (address, limit) = (
            self.source.address().to_owned(),
            self.source.settings.timeout,
        );
        marked(
            nothing,
            vec![QueryError::Slow { address, limit }.to_string()],
        )
    }

    /// The node's targets.
    fn targets(&self, node: &str) -> Result<Vec<Arc<Target>>, FleetError> {
        let unknown = || FleetError::NoSuchNode(gpumon_probe::owner::clean_name(node));
        self.now
            .told()
            .targets
            .get(node)
            .cloned()
            .ok_or_else(unknown)
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
            let told = match self.told(|| usage::nothing(&self.source, range)).await {
                Ok(told) => told,
                Err(nothing) => return Ok(nothing),
            };
            let cached = self.usage.of(range);
            let read = |before| usage::read(Arc::clone(&self.source), told, range, before);
            let value = cached.get(self.patience(), read).await;
            Ok(value.unwrap_or_else(|| self.slow(usage::nothing(&self.source, range))))
        })
    }

    fn events(&self, range: Range) -> Answer<'_, Result<Arc<FleetEvents>, FleetError>> {
        Box::pin(async move {
            let told = match self.told(|| events::nothing(&self.source, range)).await {
                Ok(told) => told,
                Err(nothing) => return Ok(nothing),
            };
            let cached = self.events.of(range);
            let read = |before| events::read(Arc::clone(&self.source), told, range, before);
            let value = cached.get(self.patience(), read).await;
            Ok(value.unwrap_or_else(|| self.slow(events::nothing(&self.source, range))))
        })
    }

    fn history<'a>(
        &'a self,
        range: Range,
        node: Option<&'a str>,
    ) -> Answer<'a, Result<Arc<FleetHistory>, FleetError>> {
        Box::pin(async move {
            let told = match self
                .told(|| history::nothing(node.map(str::to_owned)))
                .await
            {
                Ok(told) => told,
                Err(nothing) => return Ok(nothing),
            };
            let node = match node {
                Some(node) => Some((node.to_owned(), matchers(&self.targets(node)?))),
                None => None,
            };
            let name = node.as_ref().map(|(name, _)| name.clone());
            let cached = self.history.of((range, name.clone()));
            let read =
                |before| history::read(Arc::clone(&self.source), told, (range, node), before);
            let value = cached.get(self.patience(), read).await;
            Ok(value.unwrap_or_else(|| self.slow(history::nothing(name))))
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

/// Nothing, and why.
fn marked<T: Span>(mut nothing: T, problems: Vec<String>) -> Arc<T> {
    *nothing.marks().1 = problems;
    Arc::new(nothing)
}

/// What the series of a node have.
pub(super) fn matchers(targets: &[Arc<Target>]) -> String {
    let instances = any_of(targets.iter().map(|target| &*target.instance));
    let cluster = targets
        .iter()
        .map(|target| &*target.cluster)
        .find(|cluster| !cluster.is_empty());
    let cluster = cluster.map(|cluster| format!(",cluster={}", super::promql::quoted(cluster)));
    format!("instance=~{instances}{}", cluster.unwrap_or_default())
}

/// Whether it is older than what a reader that fails has marked.
fn is_late(fleet: &Fleet, limit: Duration) -> bool {
    let age = super::ask::now_ms().saturating_sub(fleet.at_ms);
    let longest = Duration::from_secs(u64::from(fleet.refresh_s) * 2) + limit;
    matches!(fleet.state, FleetState::Current | FleetState::Partial)
        && age > longest.as_millis() as u64
}

/// What is told of one node alone; no node where it has gone.
fn one_node(fleet: &Fleet, name: &str) -> Fleet {
    let at = fleet.nodes.name.iter().position(|known| known == name);
    let is_of = |gpu: &usize| at.is_some_and(|at| fleet.gpus.node[*gpu] as usize == at);
    let gpus: Vec<usize> = (0..fleet.gpus.node.len()).filter(is_of).collect();
    let place = |gpu: u32| {
        gpus.iter()
            .position(|it| *it == gpu as usize)
            .map(|it| it as u32)
    };
    let of_node = |texts: &BTreeMap<u32, String>| {
        let text = at.and_then(|at| texts.get(&(at as u32)).cloned());
        text.map(|text| (0, text)).into_iter().collect()
    };
    let nodes = FleetNodes {
        name: at.map(|_| name.to_owned()).into_iter().collect(),
        health: at.map(|at| fleet.nodes.health[at]).into_iter().collect(),
        reasons: of_node(&fleet.nodes.reasons),
        gpus: at.map(|at| fleet.nodes.gpus[at]).into_iter().collect(),
        unopenable: of_node(&fleet.nodes.unopenable),
    };
    let holds: Vec<_> = fleet
        .holds
        .iter()
        .filter_map(|hold| Some((place(hold.gpu)?, hold.owner)))
        .collect();
    let mut owners: Vec<u32> = holds.iter().map(|(_, owner)| *owner).collect();
    owners.sort_unstable();
    owners.dedup();
    let of = &fleet.gpus;
    Fleet {
        at_ms: fleet.at_ms,
        source: fleet.source.clone(),
        state: fleet.state,
        problems: fleet.problems.clone(),
        refresh_s: fleet.refresh_s,
        resolution: fleet.resolution,
        nodes,
        gpus: FleetGpus {
            node: vec![0; gpus.len()],
            index: column(&gpus, &of.index),
            model: column(&gpus, &of.model),
            models: of.models.clone(),
            health: column(&gpus, &of.health),
            readings: of
                .readings
                .iter()
                .map(|(id, values)| (id.clone(), column(&gpus, values)))
                .collect(),
            processes: column(&gpus, &of.processes),
            idle_holding_s: column(&gpus, &of.idle_holding_s),
        },
        holds: holds
            .iter()
            .filter_map(|(gpu, owner)| {
                Some(FleetHold {
                    gpu: *gpu,
                    owner: owners.binary_search(owner).ok()? as u32,
                })
            })
            .collect(),
        owners: owners
            .iter()
            .filter_map(|owner| fleet.owners.get(*owner as usize).cloned())
            .collect(),
        conditions: fleet
            .conditions
            .iter()
            .filter_map(|it| {
                Some(FleetCondition {
                    gpu: place(it.gpu)?,
                    ..it.clone()
                })
            })
            .collect(),
        missing: fleet.missing.clone(),
    }
}

/// The values of these places.
fn column<T: Clone>(gpus: &[usize], column: &[T]) -> Vec<T> {
    gpus.iter()
        .filter_map(|at| column.get(*at).cloned())
        .collect()
}
