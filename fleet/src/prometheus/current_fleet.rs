//! Reading of a fleet's current state: sends the queries that are due and combines their responses.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream};
use tokio::sync::Mutex;

use super::{
    answer::Row,
    assemble::{FactsByQuery, Inputs, Nodes, assemble_fleet},
    cached::FreshValue,
    client::QueryError,
    facts::{self, MAX_JOBS, QueryFacts},
    metrics::{self, Families, Family},
    query::{ParsedAnswer, Source, Steps, now_ms},
    query_table::{
        CENSUS_INTERVAL, CENSUS_READINGS, GPU_UP_METRIC, QUERIES, Query, QueryName, Scope,
        build_gpu_count_query, build_recorded_gpu_count_query,
    },
};
use crate::model::{Fleet, FleetOwner, FleetSource, FleetSourceKind, FleetState, Resolution};

/// The maximum number of concurrent queries.
const MAX_CONCURRENT_QUERIES: usize = 4;

/// The maximum age of a query's earlier response. The earlier response is used if the query has
/// failed.
const MAX_ANSWER_AGE: Duration = Duration::from_mins(5);

/// The maximum number of problems that are reported each time the fleet is read.
const MAX_PROBLEMS: usize = 5;

/// A reader for the current state of a fleet or a part of one.
pub(super) struct CurrentFleetReader {
    source: Arc<Source>,
    matchers: String,
    /// The resolution to use regardless of the number of GPUs, if set.
    forced: Option<Resolution>,
    known: Mutex<ReaderState>,
    told: std::sync::Mutex<FleetContext>,
}

/// Additional results from the last time the fleet was read, which other queries need.
#[derive(Debug, Default, Clone)]
pub(super) struct FleetContext {
    /// The nodes, with the targets of each node.
    pub(super) nodes: Arc<Nodes>,
    pub(super) pods: Arc<HashMap<String, FleetOwner>>,
    pub(super) families: Families,
    pub(super) jobs: BTreeSet<String>,
    pub(super) gpus: u32,
    /// Whether two Prometheus jobs scrape the same GPUs.
    pub(super) is_doubled: bool,
}

#[derive(Default)]
struct ReaderState {
    facts: FactsByQuery,
    /// The time at which each query was last answered.
    answered: BTreeMap<QueryName, Instant>,
    counted: Option<Instant>,
    gpus: u32,
    present: Families,
    families: Families,
    resolution: Option<Resolution>,
    jobs: BTreeSet<String>,
    is_doubled: bool,
    seen: HashMap<String, u64>,
}

/// The combined result of several queries. If no query was answered, the current state is unknown.
#[derive(Default)]
struct QueryResults {
    answers: usize,
    failure: Option<QueryError>,
}

/// The problems found in query responses.
#[derive(Default)]
struct Problems(BTreeSet<String>);

impl CurrentFleetReader {
    pub(super) fn new(
        source: Arc<Source>,
        further_matchers: &str,
        forced: Option<Resolution>,
    ) -> Self {
        let matchers = source.combine_matchers(further_matchers);
        Self {
            source,
            matchers,
            forced,
            known: Mutex::default(),
            told: std::sync::Mutex::default(),
        }
    }

    pub(super) fn last_context(&self) -> FleetContext {
        self.told
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }

    /// Reads the current state. If this fails, returns the previous state `before`, marked as
    /// outdated.
    pub(super) async fn read(self: Arc<Self>, before: Option<Arc<Fleet>>) -> FreshValue<Fleet> {
        let mut known = self.known.lock().await;
        match self.read_fleet(&mut known).await {
            Ok((fleet, period)) => FreshValue {
                value: Arc::new(fleet),
                period,
                is_failure: false,
            },
            Err(error) => {
                known.answered.clear();
                let value =
                    Arc::new(self.build_outdated_fleet(before.as_deref(), error.to_string()));
                FreshValue {
                    value,
                    period: self.source.settings.period,
                    is_failure: true,
                }
            }
        }
    }

    /// Returns the previous state, or an empty one, marked as outdated with the given problem.
    pub(super) fn build_outdated_fleet(&self, before: Option<&Fleet>, problem: String) -> Fleet {
        let mut fleet = before.cloned().unwrap_or_else(|| self.build_empty_fleet());
        fleet.state = if before.is_some_and(|it| it.state != FleetState::Loading) {
            FleetState::Outdated
        } else {
            FleetState::Loading
        };
        fleet.problems = vec![problem];
        fleet
    }

    /// Returns the previous state, marked as outdated. Its problem states that Prometheus did not
    /// respond within the time limit.
    pub(super) fn build_slow_fleet(&self, before: Option<&Fleet>) -> Fleet {
        self.build_outdated_fleet(before, self.source.timeout_error().to_string())
    }

    async fn read_fleet(&self, known: &mut ReaderState) -> Result<(Fleet, Duration), QueryError> {
        let mut problems = Problems::default();
        if is_query_due(known.counted, CENSUS_INTERVAL, self.source.settings.period)
            || known.present.is_empty()
        {
            self.detect_families_and_gpu_count(known, &mut problems)
                .await?;
        }
        let resolution = known.resolution.unwrap_or(Resolution::Gpu);
        let due: Vec<&Query> = QUERIES
            .iter()
            .filter(|it| it.of.contains(&resolution))
            .collect();
        let is_first = |question: &&Query| question.name != QueryName::Up;
        let (first, last): (Vec<_>, Vec<_>) = due.into_iter().partition(is_first);
        let mut outcome = self.send_due_queries(&first, known, &mut problems).await?;
        // The query for `up` is sent last, because the other responses show which jobs it must
        // select.
        outcome.add(self.send_due_queries(&last, known, &mut problems).await?);
        if let Some(failure) = outcome.failure.filter(|_| outcome.answers == 0) {
            return Err(failure);
        }
        let readings = [
            QueryName::Utilization,
            QueryName::Temperature,
            QueryName::ByNode,
        ];
        if readings
            .into_iter()
            .all(|name| known.facts.find_facts(name).is_empty())
        {
            // If there are no readings, there may be no GPUs left. The GPUs are therefore counted
            // again at the next opportunity.
            known.counted = None;
        }
        let every = if resolution == Resolution::Node { 2 } else { 1 };
        let period = self.source.settings.period * every;
        let source = self.build_empty_fleet().source;
        let state = if problems.0.is_empty() {
            FleetState::Current
        } else {
            FleetState::Partial
        };
        let problems = problems.0.into_iter().take(MAX_PROBLEMS).collect();
        let present = known.present;
        let (facts, seen) = (
            std::mem::take(&mut known.facts),
            std::mem::take(&mut known.seen),
        );
        let assembling = tokio::task::spawn_blocking(move || {
            let assembled = assemble_fleet(&Inputs {
                at_ms: now_ms(),
                facts: &facts,
                resolution,
                present,
                source,
                state,
                problems,
                refresh_s: period.as_secs().max(1) as u32,
                seen: &seen,
            });
            (assembled, facts)
        });
        let (assembled, facts) = assembling
            .await
            .map_err(|error| QueryError::NotPrometheus {
                address: self.source.address().to_owned(),
                cause: error.to_string(),
            })?;
        known.facts = facts;
        known.seen.clone_from(&assembled.seen);
        known.families = known.present;
        if assembled.is_dcgm_covered {
            (known.families.renamed, known.families.old) = (false, false);
        }
        let context = FleetContext {
            nodes: Arc::new(assembled.nodes),
            pods: Arc::new(assembled.pods),
            families: known.families,
            jobs: known.jobs.clone(),
            gpus: known.gpus,
            is_doubled: known.is_doubled,
        };
        *self
            .told
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = context;
        Ok((assembled.fleet, period))
    }

    /// Counts the GPUs that have metrics of each family.
    async fn detect_families_and_gpu_count(
        &self,
        known: &mut ReaderState,
        problems: &mut Problems,
    ) -> Result<(), QueryError> {
        let recorded = self.query_recorded_gpu_count(problems).await?;
        let Some(expression) = build_gpu_count_query(&self.matchers, recorded.is_none()) else {
            return Ok(());
        };
        let asked = self.source.send_query(&expression, None, |answer| {
            let counts = answer.rows.iter().filter_map(|row| {
                Some((
                    find_metric_family(row.labels.get("__name__"))?,
                    row.value()?,
                ))
            });
            counts.collect::<Vec<_>>()
        });
        let asked = asked.await?;
        problems.add_warnings(&asked.warnings);
        let mut counts = asked.value;
        counts.extend(recorded.map(|count| (Family::Own, count)));
        let mut present = Families::default();
        for (family, _) in &counts {
            present.insert(*family);
        }
        known.gpus = counts
            .iter()
            .map(|(_, count)| *count as u32)
            .max()
            .unwrap_or(0);
        if present.is_empty() {
            let address = self.source.address();
            problems.add(format!(
                "Prometheus at {address} has no GPU metrics{}. Configure it to scrape gpumon or \
                 dcgm-exporter: deploy/prometheus/prometheus.yml is an example",
                if self.matchers.is_empty() {
                    ""
                } else {
                    " with the requested labels"
                },
            ));
            // If all GPUs are down, Prometheus may have only `up` series left. The families that
            // were found earlier are therefore kept.
            present = known.present;
        } else {
            known.counted = Some(Instant::now());
        }
        // Some families may have no GPUs that the others lack. Until this is determined again, all
        // existing families are read.
        (known.present, known.families) = (present, present);
        let is_many = known.gpus > self.source.settings.gpus_most && present.own;
        let resolution = match self.forced {
            Some(forced) => forced,
            None if is_many => Resolution::Node,
            None => Resolution::Gpu,
        };
        if known
            .resolution
            .replace(resolution)
            .is_some_and(|before| before != resolution)
        {
            (known.facts, known.answered) = (FactsByQuery::default(), BTreeMap::new());
        }
        Ok(())
    }

    /// Returns the number of GPUs that gpumon exports, according to a recording rule, but only if
    /// there are too many to list. Counting so many GPUs directly would take Prometheus as long as
    /// all other queries together.
    async fn query_recorded_gpu_count(
        &self,
        problems: &mut Problems,
    ) -> Result<Option<f64>, QueryError> {
        if self.forced.is_some() {
            return Ok(None);
        }
        let expression = build_recorded_gpu_count_query(&self.matchers);
        let asked = self
            .source
            .send_query(&expression, None, |answer| {
                answer.rows.first().and_then(Row::value)
            })
            .await?;
        problems.add_warnings(&asked.warnings);
        Ok(asked
            .value
            .filter(|count| *count > f64::from(self.source.settings.gpus_most)))
    }

    /// Sends the queries that are due, a limited number at a time.
    async fn send_due_queries(
        &self,
        questions: &[&Query],
        known: &mut ReaderState,
        problems: &mut Problems,
    ) -> Result<QueryResults, QueryError> {
        let mut outcome = QueryResults::default();
        let scope = Scope {
            matchers: &self.matchers,
            families: known.families,
            present: known.present,
            jobs: &known.jobs,
        };
        let period = self.source.settings.period;
        let due = questions
            .iter()
            .filter(|it| is_query_due(known.answered.get(&it.name).copied(), it.every, period));
        let asking = due.filter_map(|question| {
            Some(send_query(
                Arc::clone(&self.source),
                question.name,
                question.range,
                (question.expression)(&scope)?,
            ))
        });
        let asking: Vec<_> = asking.collect();
        // If the metrics for a query no longer exist, the old values of the query are dropped.
        for question in questions
            .iter()
            .filter(|it| (it.expression)(&scope).is_none())
        {
            known.facts.set(question.name, Arc::default());
        }
        let mut answers = stream::iter(asking).buffer_unordered(MAX_CONCURRENT_QUERIES);
        while let Some((name, asked)) = answers.next().await {
            match asked {
                Ok(asked) => {
                    outcome.answers += 1;
                    problems.add_warnings(&asked.warnings);
                    known.answered.insert(name, Instant::now());
                    let free = MAX_JOBS.saturating_sub(known.jobs.len());
                    known.jobs.extend(asked.value.jobs.into_iter().take(free));
                    if name == QueryName::Roster {
                        known.is_doubled = asked.value.is_doubled;
                    }
                    known.facts.set(name, Arc::new(asked.value.all));
                }
                Err(error) if error.affects_all_queries() => return Err(error),
                Err(error) => {
                    problems.add(format!("{}: {error}", name.help()));
                    if known
                        .answered
                        .get(&name)
                        .is_none_or(|at| at.elapsed() > MAX_ANSWER_AGE)
                    {
                        known.facts.set(name, Arc::default());
                    }
                    outcome.failure = Some(error);
                }
            }
        }
        Ok(outcome)
    }

    fn build_empty_fleet(&self) -> Fleet {
        let source = FleetSource {
            kind: FleetSourceKind::Prometheus,
            name: self.source.address().to_owned(),
        };
        Fleet::new_unread(
            source,
            now_ms(),
            self.source.settings.period.as_secs().max(1) as u32,
        )
    }
}

impl QueryResults {
    fn add(&mut self, more: Self) {
        self.answers += more.answers;
        self.failure = more.failure.or(self.failure.take());
    }
}

impl Problems {
    fn add(&mut self, problem: String) {
        self.0.insert(problem);
    }

    fn add_warnings(&mut self, warnings: &[String]) {
        self.0
            .extend(warnings.iter().map(|warning| describe_warning(warning)));
    }
}

async fn send_query(
    source: Arc<Source>,
    name: QueryName,
    range: Option<(u32, u32)>,
    expression: String,
) -> (QueryName, Result<ParsedAnswer<QueryFacts>, QueryError>) {
    let label = source.settings.node_label.clone();
    let steps = range.map(|(range_s, step_s)| Steps::new_until_now(range_s, step_s));
    let asked = source.send_query(&expression, steps, move |answer| {
        facts::read_facts(name, answer, label.as_deref())
    });
    (name, asked.await)
}

/// Describes a warning in a response as a problem for users.
pub(super) fn describe_warning(warning: &str) -> String {
    format!(
        "The source of the metrics warns that its response may be incomplete: {warning}. Check the \
         stores from which it reads"
    )
}

/// Returns `true` if a query is due. A query is due half a period early, because it might otherwise
/// be sent a whole period late.
fn is_query_due(last: Option<Instant>, every: u32, period: Duration) -> bool {
    last.is_none_or(|at| at.elapsed() + period / 2 >= period * every)
}

fn find_metric_family(name: &str) -> Option<Family> {
    if name == GPU_UP_METRIC {
        Some(Family::Own)
    } else {
        metrics::find_reading_by_metric(&CENSUS_READINGS, name).map(|(_, family, _)| family)
    }
}
