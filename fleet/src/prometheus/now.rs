//! The current state of a fleet: sends the queries that are due, and combines the answers.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream};
use tokio::sync::Mutex;

use super::{
    answer::Row,
    ask::{Asked, Source, Steps, now_ms},
    assemble::{Assembled, FactsByQuestion, Inputs, Nodes, assemble},
    cached::Fresh,
    client::QueryError,
    facts::{self, Facts, MOST_JOBS},
    metrics::{self, Families, Family},
    questions::{
        CENSUS, CENSUS_EVERY, QUESTIONS, Question, QuestionName, Scope, UP, census, recorded_census,
    },
};
use crate::model::{Fleet, FleetOwner, FleetSource, FleetSourceKind, FleetState, Resolution};

/// The maximum number of concurrent queries.
const AT_ONCE: usize = 4;

/// The maximum age of an earlier answer that replaces a failed query.
const KEPT: Duration = Duration::from_mins(5);

/// The maximum number of reported problems per reading.
const MOST_PROBLEMS: usize = 5;

/// A reader of the current state of a fleet or a part of it.
pub(super) struct NowReader {
    source: Arc<Source>,
    matchers: String,
    /// The resolution to use regardless of the number of GPUs.
    forced: Option<Resolution>,
    known: Mutex<Known>,
    told: std::sync::Mutex<Told>,
}

/// Further results of a reading.
#[derive(Debug, Default, Clone)]
pub(super) struct Told {
    /// The node of each target.
    pub(super) nodes: Arc<Nodes>,
    pub(super) pods: Arc<HashMap<String, FleetOwner>>,
    pub(super) families: Families,
    pub(super) jobs: BTreeSet<String>,
    pub(super) gpus: u32,
    /// Whether two Prometheus jobs scrape the same GPUs.
    pub(super) is_doubled: bool,
}

#[derive(Default)]
struct Known {
    facts: FactsByQuestion,
    /// The time of the last answer to each query.
    answered: BTreeMap<QuestionName, Instant>,
    counted: Option<Instant>,
    gpus: u32,
    present: Families,
    families: Families,
    resolution: Option<Resolution>,
    jobs: BTreeSet<String>,
    is_doubled: bool,
    seen: HashMap<String, u64>,
}

/// The result of several queries. If none was answered, the current state is unknown.
#[derive(Default)]
struct Outcome {
    answers: usize,
    failure: Option<QueryError>,
}

/// Problems found in answers.
#[derive(Default)]
struct Problems(BTreeSet<String>);

impl NowReader {
    pub(super) fn new(
        source: Arc<Source>,
        further_matchers: &str,
        forced: Option<Resolution>,
    ) -> Self {
        let matchers = source.matchers_and(further_matchers);
        Self {
            source,
            matchers,
            forced,
            known: Mutex::default(),
            told: std::sync::Mutex::default(),
        }
    }

    pub(super) fn told(&self) -> Told {
        self.told
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }

    /// Reads the current state. If that fails, the earlier state is returned, marked as outdated.
    pub(super) async fn read(self: Arc<Self>, before: Option<Arc<Fleet>>) -> Fresh<Fleet> {
        let mut known = self.known.lock().await;
        match self.ask_all(&mut known).await {
            Ok((fleet, period)) => Fresh {
                value: Arc::new(fleet),
                period,
                is_failure: false,
            },
            Err(error) => {
                known.answered.clear();
                let value = Arc::new(self.outdated(before.as_deref(), error.to_string()));
                Fresh {
                    value,
                    period: self.source.settings.period,
                    is_failure: true,
                }
            }
        }
    }

    /// Returns the earlier or an empty state, with this problem.
    pub(super) fn outdated(&self, before: Option<&Fleet>, problem: String) -> Fleet {
        let mut fleet = before.cloned().unwrap_or_else(|| self.empty());
        fleet.state = if before.is_some_and(|it| it.state != FleetState::Loading) {
            FleetState::Outdated
        } else {
            FleetState::Loading
        };
        fleet.problems = vec![problem];
        fleet
    }

    /// Returns the earlier state, with the problem that Prometheus is slower than viewers can wait.
    pub(super) fn slow(&self, before: Option<&Fleet>) -> Fleet {
        let (address, limit) = (
            self.source.address().to_owned(),
            self.source.settings.timeout,
        );
        self.outdated(before, QueryError::Slow { address, limit }.to_string())
    }

    async fn ask_all(&self, known: &mut Known) -> Result<(Fleet, Duration), QueryError> {
        let mut problems = Problems::default();
        if is_due(known.counted, CENSUS_EVERY, self.source.settings.period)
            || known.present.is_none()
        {
            self.count(known, &mut problems).await?;
        }
        let resolution = known.resolution.unwrap_or(Resolution::Gpu);
        let due: Vec<&Question> = QUESTIONS
            .iter()
            .filter(|it| it.of.contains(&resolution))
            .collect();
        let is_first = |question: &&Question| question.name != QuestionName::Up;
        let (first, last): (Vec<_>, Vec<_>) = due.into_iter().partition(is_first);
        let mut outcome = self.ask_due(&first, known, &mut problems).await?;
        // The other answers contain the jobs that this query needs.
        outcome.add(self.ask_due(&last, known, &mut problems).await?);
        if let Some(failure) = outcome.failure.filter(|_| outcome.answers == 0) {
            return Err(failure);
        }
        let readings = [
            QuestionName::Utilization,
            QuestionName::Temperature,
            QuestionName::ByNode,
        ];
        if readings
            .into_iter()
            .all(|name| known.facts.of(name).is_empty())
        {
            // Counting is due at the next reading, in order to find out whether there are any GPUs
            // left.
            known.counted = None;
        }
        let every = if resolution == Resolution::Node { 2 } else { 1 };
        let period = self.source.settings.period * every;
        let inputs = (
            known.present,
            resolution,
            std::mem::take(&mut known.facts),
            std::mem::take(&mut known.seen),
        );
        let (assembled, facts) = self.assembled(inputs, problems, period).await?;
        known.facts = facts;
        known.seen.clone_from(&assembled.seen);
        known.families = known.present;
        if assembled.is_dcgm_covered {
            (known.families.renamed, known.families.old) = (false, false);
        }
        let told = Told {
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
            .unwrap_or_else(std::sync::PoisonError::into_inner) = told;
        Ok((assembled.fleet, period))
    }

    async fn assembled(
        &self,
        (present, resolution, facts, seen): (
            Families,
            Resolution,
            FactsByQuestion,
            HashMap<String, u64>,
        ),
        problems: Problems,
        period: Duration,
    ) -> Result<(Assembled, FactsByQuestion), QueryError> {
        let source = self.empty().source;
        let state = if problems.0.is_empty() {
            FleetState::Current
        } else {
            FleetState::Partial
        };
        let problems = problems.0.into_iter().take(MOST_PROBLEMS).collect();
        let assembling = tokio::task::spawn_blocking(move || {
            let at_ms = now_ms();
            let refresh_s = period.as_secs().max(1) as u32;
            let seen = &seen;
            let inputs = Inputs {
                at_ms,
                facts: &facts,
                resolution,
                present,
                source,
                state,
                problems,
                refresh_s,
                seen,
            };
            (assemble(&inputs), facts)
        });
        let broken = |error: tokio::task::JoinError| QueryError::NotPrometheus {
            address: self.source.address().to_owned(),
            cause: error.to_string(),
        };
        assembling.await.map_err(broken)
    }

    /// Counts GPUs by the family of their metrics.
    async fn count(&self, known: &mut Known, problems: &mut Problems) -> Result<(), QueryError> {
        let recorded = self.count_recorded(problems).await?;
        let Some(expression) = census(&self.matchers, recorded.is_none()) else {
            return Ok(());
        };
        let asked = self.source.ask(&expression, None, |answer| {
            let counts = answer
                .rows
                .iter()
                .filter_map(|row| Some((family(row.labels.get("__name__"))?, row.value()?)));
            counts.collect::<Vec<_>>()
        });
        let asked = asked.await?;
        problems.warnings(&asked.warnings);
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
        if present.is_none() {
            let address = self.source.address();
            problems.add(format!(
                "Prometheus at {address} has no metrics of GPUs{}. Have it scrape gpumon or dcgm-exporter: \
                 deploy/prometheus/prometheus.yml is an example",
                if self.matchers.is_empty() { "" } else { " with the labels that are asked for" },
            ));
            // All GPUs may be down, which is visible in `up`.
            present = known.present;
        } else {
            known.counted = Some(Instant::now());
        }
        // Whether the other families add anything must be determined again.
        (known.present, known.families) = (present, present);
        let is_many = known.gpus > self.source.settings.gpus_most && present.own;
        let resolution = if is_many {
            Resolution::Node
        } else {
            Resolution::Gpu
        };
        let resolution = self.forced.unwrap_or(resolution);
        if known
            .resolution
            .replace(resolution)
            .is_some_and(|before| before != resolution)
        {
            (known.facts, known.answered) = (FactsByQuestion::default(), BTreeMap::new());
        }
        Ok(())
    }

    /// Returns the number of gpumon's GPUs if a recording rule shows that there are too many to
    /// list. Counting them would take Prometheus as long as all other queries.
    async fn count_recorded(&self, problems: &mut Problems) -> Result<Option<f64>, QueryError> {
        let expression = recorded_census(&self.matchers).filter(|_| self.forced.is_none());
        let Some(expression) = expression else {
            return Ok(None);
        };
        let asked = self
            .source
            .ask(&expression, None, |answer| {
                answer.rows.first().and_then(Row::value)
            })
            .await?;
        problems.warnings(&asked.warnings);
        Ok(asked
            .value
            .filter(|count| *count > f64::from(self.source.settings.gpus_most)))
    }

    /// Sends the queries that are due, some at a time.
    async fn ask_due(
        &self,
        questions: &[&Question],
        known: &mut Known,
        problems: &mut Problems,
    ) -> Result<Outcome, QueryError> {
        let mut outcome = Outcome::default();
        let scope = Scope {
            matchers: &self.matchers,
            families: known.families,
            present: known.present,
            jobs: &known.jobs,
        };
        let period = self.source.settings.period;
        let due = questions
            .iter()
            .filter(|it| is_due(known.answered.get(&it.name).copied(), it.every, period));
        let asking = due.filter_map(|question| {
            Some(ask(
                Arc::clone(&self.source),
                question.name,
                question.range,
                (question.expression)(&scope)?,
            ))
        });
        let asking: Vec<_> = asking.collect();
        // Facts are dropped if no metric can answer their query any longer.
        for question in questions
            .iter()
            .filter(|it| (it.expression)(&scope).is_none())
        {
            known.facts.set(question.name, Arc::default());
        }
        let mut answers = stream::iter(asking).buffer_unordered(AT_ONCE);
        while let Some((name, asked)) = answers.next().await {
            match asked {
                Ok(asked) => {
                    outcome.answers += 1;
                    problems.warnings(&asked.warnings);
                    known.answered.insert(name, Instant::now());
                    let free = MOST_JOBS.saturating_sub(known.jobs.len());
                    known.jobs.extend(asked.value.jobs.into_iter().take(free));
                    if name == QuestionName::Roster {
                        known.is_doubled = asked.value.is_doubled;
                    }
                    known.facts.set(name, Arc::new(asked.value.all));
                }
                Err(error) if error.is_of_all() => return Err(error),
                Err(error) => {
                    problems.add(format!("{}: {error}", name.help()));
                    if known
                        .answered
                        .get(&name)
                        .is_none_or(|at| at.elapsed() > KEPT)
                    {
                        known.facts.set(name, Arc::default());
                    }
                    outcome.failure = Some(error);
                }
            }
        }
        Ok(outcome)
    }

    fn empty(&self) -> Fleet {
        let source = FleetSource {
            kind: FleetSourceKind::Prometheus,
            name: self.source.address().to_owned(),
        };
        Fleet::unread(
            source,
            now_ms(),
            self.source.settings.period.as_secs().max(1) as u32,
        )
    }
}

impl Outcome {
    fn add(&mut self, more: Self) {
        self.answers += more.answers;
        self.failure = more.failure.or(self.failure.take());
    }
}

impl Problems {
    fn add(&mut self, problem: String) {
        self.0.insert(problem);
    }

    fn warnings(&mut self, warnings: &[String]) {
        self.0
            .extend(warnings.iter().map(|warning| incomplete(warning)));
    }
}

async fn ask(
    source: Arc<Source>,
    name: QuestionName,
    range: Option<(u32, u32)>,
    expression: String,
) -> (QuestionName, Result<Asked<Facts>, QueryError>) {
    let label = source.settings.node_label.clone();
    let steps = range.map(|(range_s, step_s)| Steps::until_now(range_s, step_s));
    let asked = source.ask(&expression, steps, move |answer| {
        facts::read(name, answer, label.as_deref())
    });
    (name, asked.await)
}

/// Describes a warning of the source as a problem.
pub(super) fn incomplete(warning: &str) -> String {
    format!(
        "The answer may lack something, as its source says: {warning}. Check the stores behind it"
    )
}

/// Returns `true` if a query is due. It is sent half a period early rather than one period late.
fn is_due(last: Option<Instant>, every: u32, period: Duration) -> bool {
    last.is_none_or(|at| at.elapsed() + period / 2 >= period * every)
}

fn family(name: &str) -> Option<Family> {
    if name == UP {
        Some(Family::Own)
    } else {
        metrics::by_name(&CENSUS, name).map(|(_, family, _)| family)
    }
}
