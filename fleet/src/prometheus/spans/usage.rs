//! Usage by owner, up to now.
//!
//! If the rules of `deploy/prometheus/fleet.yml` have recorded the usage of each quarter of an
//! hour, these values are added up. Otherwise, counters are compared at both ends of the range.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gpumon_probe::{owner::clean_name, units::duration};

use super::{
    super::{
        answer::Answer,
        ask::Source,
        cached::Fresh,
        client::QueryError,
        metrics::{self, Families},
        now::Told,
        owners::{OWNER_LABELS, owner, pod},
        target::Interner,
    },
    REPLICAS, SpanReader, fresh, in_base_units,
};
use crate::{
    model::{
        Amounts, FleetOwner, FleetUsage, OwnerKind, OwnerUsage, UsageGroup, sort_groups, sum_known,
    },
    reader::Range,
};

/// The time that one recorded sum covers, in seconds.
const RULES_S: u32 = 900;

/// The minimum range for recorded sums, in seconds. Counters are more precise for shorter ranges.
const RECORDED_S: u32 = 6 * 3600;
const CHOOSE_LONGER: &str =
    "Choose a range of 6 h or more, of which deploy/prometheus/fleet.yml records it";

/// A counter that every node of gpumon exports, even if no GPU has an owner.
const UNHELD: &str = "gpumon_unheld_gpu_seconds_total";

/// The counter of each amount, and its recording rule.
const COUNTERS: [(&str, &str); 3] = [
    (
        "gpumon_owner_gpu_seconds_total",
        "owner:gpumon_owner_gpu_seconds:increase15m",
    ),
    (
        "gpumon_owner_active_gpu_seconds_total",
        "owner:gpumon_owner_active_gpu_seconds:increase15m",
    ),
    (
        "gpumon_owner_energy_joules_total",
        "owner:gpumon_owner_energy_joules:increase15m",
    ),
];
const UNHELD_COUNTERS: [(&str, &str); 2] = [
    (UNHELD, "job:gpumon_unheld_gpu_seconds:increase15m"),
    (
        "gpumon_unheld_energy_joules_total",
        "job:gpumon_unheld_energy_joules:increase15m",
    ),
];
/// The labels that distinguish the replicas of a Prometheus that evaluates rules.
const RULE_REPLICAS: &str = "replica, prometheus_replica";
const NODES_RULE: &str = "owner:gpumon_owner_nodes:count15m";

type ByOwner = BTreeMap<FleetOwner, f64>;
type Sums<K> = BTreeMap<K, Amounts>;

/// The usage that was found.
#[derive(Default)]
struct Found {
    owners: Sums<FleetOwner>,
    /// The number of nodes of each owner.
    nodes: ByOwner,
    /// The sums by user, if Prometheus adds them up. The key `None` is for unknown users.
    users: Option<Sums<Option<String>>>,
    /// The sums by namespace, over the pods whose namespace is known.
    namespaces: Option<Sums<Option<String>>>,
    unheld_s: Option<f64>,
    unheld_joules: Option<f64>,
}

/// The source of the values that are added up.
#[derive(Clone, Copy)]
enum Basis {
    /// The values that rules have recorded.
    Rules,
    /// The increase of counters over this many seconds.
    Counters(u32),
}

pub(in crate::prometheus) async fn read(
    source: Arc<Source>,
    told: Told,
    range: Range,
    before: Option<Arc<FleetUsage>>,
) -> Fresh<FleetUsage> {
    let reader = SpanReader::new(source, told, range);
    let empty = FleetUsage::empty(reader.from_ms, reader.to_ms);
    let period = Duration::from_secs(u64::from(range.seconds() / 96).clamp(60, 1800));
    fresh(reader.usage().await, before, empty, period)
}

/// Returns the usage before anything has been read.
pub(in crate::prometheus) fn nothing(source: &Arc<Source>, range: Range) -> FleetUsage {
    let reader = SpanReader::new(Arc::clone(source), Told::default(), range);
    FleetUsage::empty(reader.from_ms, reader.to_ms)
}

impl SpanReader {
    async fn usage(mut self) -> Result<FleetUsage, QueryError> {
        let found = if !self.told.families.own {
            self.by_pods().await?
        } else if self.has_rules().await? {
            self.by_rules().await?
        } else {
            self.by_counters().await?
        };
        if self.told.families.own && self.told.families.has_dcgm() {
            self.problem(
                "What was used of nodes that dcgm-exporter alone tells of is left out; run gpumon there".to_owned(),
            );
        }
        self.check()?;
        Ok(self.usage_of(found))
    }

    /// Returns `true` if rules have recorded nearly all of the range and can be used. They lack the
    /// last minutes, which matter in a short range, and they count the GPUs of two jobs with the
    /// same targets twice.
    async fn has_rules(&mut self) -> Result<bool, QueryError> {
        if self.told.is_doubled || self.range.seconds() < RECORDED_S {
            return Ok(false);
        }
        let rule = self.metric(UNHELD_COUNTERS[0].1, "");
        let count = self
            .ask_number(&format!(
                "max(count_over_time({rule}[{}s]))",
                self.range.seconds()
            ))
            .await?;
        let expected = f64::from(self.range.seconds() / RULES_S);
        let is_recorded = count.is_some_and(|count| count >= (expected * 0.9).floor().max(1.0));
        if let Some(count) = count.filter(|count| is_recorded && *count < expected) {
            self.problem(format!(
                "deploy/prometheus/fleet.yml has recorded {count} of {expected} quarters of an hour, and the others are \
                 left out"
            ));
        }
        Ok(is_recorded)
    }

    async fn by_rules(&mut self) -> Result<Found, QueryError> {
        self.end_with_rules().await?;
        let range = self.range.seconds();
        let mut found = self.sums(Basis::Rules).await?;
        let nodes = format!("max_over_time({}[{range}s])", self.metric(NODES_RULE, ""));
        let nodes = format!(
            "max by ({OWNER_LABELS}, exported_container) (max without ({RULE_REPLICAS}) ({nodes}))"
        );
        found.nodes = self.by_owner(&nodes).await?;
        for (at, (_, rule)) in UNHELD_COUNTERS.into_iter().enumerate() {
            let rule = self.metric(rule, "");
            let once = format!("max without ({RULE_REPLICAS}) (sum_over_time({rule}[{range}s]))");
            *[&mut found.unheld_s, &mut found.unheld_joules][at] =
                self.ask_number(&format!("sum({once})")).await?;
        }
        let unheld = format!("{}[{range}s:{RULES_S}s]", self.metric(UNHELD, ""));
        let quarters = range / RULES_S;
        let gaps = format!("count(count_over_time({unheld}) < {quarters} or resets({unheld}) > 0)");
        if let Some(count) = self.ask_number(&gaps).await?.filter(|count| *count > 0.0) {
            self.problem(format!(
                "{count} nodes have restarted gpumon or were not scraped for a part of the time, and some of what was \
                 used there then is left out"
            ));
        }
        Ok(found)
    }

    /// Moves the end of the range to the newest quarter of an hour that rules have recorded,
    /// because they have no later values.
    async fn end_with_rules(&mut self) -> Result<(), QueryError> {
        let rule = self.metric(UNHELD_COUNTERS[0].1, "");
        let newest = format!(
            "max(max_over_time(timestamp({rule})[{}s:60s]))",
            RULES_S + 300
        );
        let newest_ms = self
            .ask_number(&newest)
            .await?
            .map(|seconds| (seconds * 1000.0) as u64);
        let is_recent = |ms: &u64| {
            (self.to_ms.saturating_sub(2 * u64::from(RULES_S) * 1000)..=self.to_ms).contains(ms)
        };
        if let Some(newest_ms) = newest_ms.filter(is_recent) {
            self.from_ms -= self.to_ms - newest_ms;
            self.to_ms = newest_ms;
        }
        Ok(())
    }

    async fn by_counters(&mut self) -> Result<Found, QueryError> {
        let range = self.known_range().await?;
        let mut found = self.sums(Basis::Counters(range)).await?;
        let held = format!(
            "max without ({REPLICAS}) ({} > 0)",
            self.increase(COUNTERS[0].0, "", range)
        );
        found.nodes = self
            .by_owner(&format!(
                "count by ({OWNER_LABELS}, exported_container) ({held})"
            ))
            .await?;
        for (at, (counter, _)) in UNHELD_COUNTERS.into_iter().enumerate() {
            let used = self.increase(counter, "", range);
            let sum = self
                .ask_number(&format!("sum(max without ({REPLICAS}) ({used}))"))
                .await?;
            *[&mut found.unheld_s, &mut found.unheld_joules][at] = sum;
        }
        let unheld = self.metric(UNHELD, "");
        for (operator, what) in [
            (
                "<",
                "have restarted gpumon, and what was used there before that is left out",
            ),
            (
                "unless",
                "were not scraped when the span began, and what was used there is left out",
            ),
        ] {
            let count = self
                .ask_number(&format!(
                    "count({unheld} {operator} {unheld} offset {range}s)"
                ))
                .await?;
            let Some(count) = count.filter(|count| *count > 0.0) else {
                continue;
            };
            let cure = if self.range.seconds() < RECORDED_S {
                CHOOSE_LONGER
            } else {
                self.unrecorded().await?
            };
            self.problem(format!("{count} nodes {what}. {cure}"));
        }
        Ok(found)
    }

    /// Reads the usage of owners, users, and namespaces. Prometheus adds up users and namespaces,
    /// so that these sums are complete for any number of jobs.
    async fn sums(&mut self, basis: Basis) -> Result<Found, QueryError> {
        let mut found = Found::default();
        let namespaces = self.namespaces_of_pods();
        for at in 0..COUNTERS.len() {
            let query = |further: &str| self.amount_query(basis, at, further);
            let jobs = format!(
                "sum by ({OWNER_LABELS}, exported_container) ({})",
                query("notebook=\"\"")
            );
            let notebooks = format!("sum by (user, notebook) ({})", query("notebook!=\"\""));
            let users = format!("sum by (user) ({})", query(""));
            for (owner, value) in self.by_owner(&jobs).await? {
                found.owners.entry(owner).or_default()[at] = Some(value);
            }
            for (owner, value) in self.by_owner(&notebooks).await? {
                if owner.kind == OwnerKind::Notebook {
                    found.owners.entry(owner).or_default()[at] = Some(value);
                }
            }
            add_named(&mut found.users, at, self.by_label(&users, "user").await?);
            if found
                .owners
                .keys()
                .any(|owner| owner.kind == OwnerKind::Pod)
            {
                let of_pods = self.amount_query(basis, at, "pod_uid!=\"\"");
                let sums = format!(
                    "sum by (namespace) ({of_pods} * on (pod_uid) group_left (namespace) {namespaces})"
                );
                add_named(
                    &mut found.namespaces,
                    at,
                    self.by_label(&sums, "namespace").await?,
                );
            }
        }
        let omitted = format!("count({} > 0)", self.metric("gpumon_owners_omitted", ""));
        if let Some(count) = self
            .ask_number(&omitted)
            .await?
            .filter(|count| *count > 0.0)
        {
            self.problem(format!(
                "{count} nodes have had more than 500 owners since gpumon's start, and metrics leave out those with the \
                 least energy"
            ));
        }
        Ok(found)
    }

    /// Returns the query for one amount of each owner, which counts replicas once.
    fn amount_query(&self, basis: Basis, at: usize, further: &str) -> String {
        let (counter, rule) = COUNTERS[at];
        match basis {
            Basis::Rules => {
                let range = self.range.seconds();
                format!(
                    "max without ({RULE_REPLICAS}) (sum_over_time({}[{range}s]))",
                    self.metric(rule, further)
                )
            }
            Basis::Counters(range) => {
                format!(
                    "max without ({REPLICAS}) ({})",
                    self.increase(counter, further, range)
                )
            }
        }
    }

    /// Returns the query for the namespace of each pod in the range, because counters have only the
    /// pod's UID. If Prometheus adds labels of the pod that it scrapes, the labels of the pod on
    /// the GPU start with `exported_`.
    fn namespaces_of_pods(&self) -> String {
        let is_recorded = self.told.gpus > self.source.settings.gpus_most;
        let jobs = if is_recorded {
            "instance:gpumon_gpu_job_info:count"
        } else {
            "gpumon_gpu_job_info"
        };
        let exported = self.metric(jobs, "pod_uid!=\"\",exported_namespace!=\"\"");
        let own = "pod_uid!=\"\",namespace!=\"\",exported_namespace=\"\",exported_pod=\"\",exported_container=\"\",\
                   container!~\".*(gpumon|exporter).*\"";
        let own = self.metric(jobs, own);
        let step = (self.range.seconds() / 96).max(60);
        // The range includes pods that end soon after its start. Rules may lag by half an hour.
        let range = self.range.seconds() + 2 * step.max(RULES_S);
        format!(
            "topk by (pod_uid) (1, group by (pod_uid, namespace) (max_over_time((label_replace({exported}, \
             \"namespace\", \"$1\", \"exported_namespace\", \"(.*)\") or {own})[{range}s:{step}s])))"
        )
    }

    /// Returns sums by the value of one label. The key `None` is for series without the label.
    async fn by_label(
        &mut self,
        expression: &str,
        label: &'static str,
    ) -> Result<BTreeMap<Option<String>, f64>, QueryError> {
        let read = move |answer: &Answer<'_>| {
            let mut sums = BTreeMap::new();
            for row in &answer.rows {
                let name = clean_name(row.labels.get(label));
                let name = (!name.is_empty()).then_some(name);
                *sums.entry(name).or_default() += row.value().unwrap_or(0.0);
            }
            sums
        };
        Ok(self.ask(expression, None, read).await?.unwrap_or_default())
    }

    /// Returns the query for the increase of a counter within this time. A new or reset counter has
    /// increased by its value if its node was scraped at the start. Otherwise, the increase is
    /// unknown.
    fn increase(&self, counter: &str, further: &str, range_s: u32) -> String {
        let (counter, unheld) = (self.metric(counter, further), self.metric(UNHELD, ""));
        format!(
            "((({counter} - {counter} offset {range_s}s) >= 0) \
             or {counter} and on (job, instance) {unheld} offset {range_s}s)"
        )
    }

    /// Returns the length of the range, or of the part in which most nodes were scraped.
    async fn known_range(&mut self) -> Result<u32, QueryError> {
        let unheld = self.metric(UNHELD, "");
        let now = self
            .ask_number(&format!("count({unheld})"))
            .await?
            .unwrap_or(0.0);
        let mut range = self.range.seconds();
        while range >= 2 * 60 {
            let then = self
                .ask_number(&format!("count({unheld} offset {range}s)"))
                .await?
                .unwrap_or(0.0);
            if then >= now / 2.0 {
                break;
            }
            range /= 2;
        }
        if range < self.range.seconds() {
            self.from_ms = self.to_ms.saturating_sub(u64::from(range) * 1000);
            let [all, known] =
                [self.range.seconds(), range].map(|seconds| duration(u64::from(seconds) * 1000));
            self.problem(format!(
                "Prometheus has read most nodes for less than {all}; this is of the last {known}"
            ));
        }
        Ok(range)
    }

    /// Reads the usage of pods from samples of dcgm-exporter.
    async fn by_pods(&mut self) -> Result<Found, QueryError> {
        let (range, mut found) = (self.range.seconds(), Found::default());
        let step = (range / 96).max(300);
        let Some([utilization, power]) = self.readings([metrics::UTILIZATION, metrics::POWER])
        else {
            return Ok(found);
        };
        let sums = [
            ("count_over_time", &utilization),
            ("sum_over_time", &utilization),
            ("sum_over_time", &power),
        ];
        let labels = "pod, namespace, container, exported_pod, exported_namespace, exported_container, Hostname, hostname, \
                      instance";
        for (at, (function, of)) in sums.into_iter().enumerate() {
            let all = format!("sum by ({labels}) ({function}({of}[{range}s:{step}s]) * {step})");
            let Some(rows) = self.ask(&all, None, pods).await? else {
                continue;
            };
            for (pod, node, seconds) in rows {
                match (pod, at) {
                    (Some(pod), _) => {
                        if at == 0 {
                            *found.nodes.entry(pod.clone()).or_default() += node;
                        }
                        *found.owners.entry(pod).or_default()[at].get_or_insert(0.0) += seconds;
                    }
                    (None, 0) => *found.unheld_s.get_or_insert(0.0) += seconds,
                    (None, 2) => *found.unheld_joules.get_or_insert(0.0) += seconds,
                    (None, _) => {}
                }
            }
        }
        Ok(found)
    }

    /// Returns the expressions of these readings of dcgm-exporter in base units, with percentages
    /// as fractions.
    fn readings<const N: usize>(&self, ids: [&str; N]) -> Option<[String; N]> {
        let families = Families {
            own: false,
            ..self.told.families
        };
        let of = |id: &str| {
            let names = in_base_units(id, families, &self.source.matchers);
            (!names.is_empty()).then(|| format!("({})", names.join(" or ")))
        };
        let all: Vec<_> = ids.into_iter().filter_map(of).collect();
        all.try_into().ok()
    }

    async fn by_owner(&mut self, expression: &str) -> Result<ByOwner, QueryError> {
        let pods = Arc::clone(&self.told.pods);
        let read = move |answer: &Answer<'_>| {
            let mut interner = Interner::new(None);
            let mut used = ByOwner::new();
            for row in &answer.rows {
                let Some((owner, value)) = owner(&row.labels, &mut interner).zip(row.value())
                else {
                    continue;
                };
                // A pod that still runs has a name.
                let named = if owner.kind == OwnerKind::Pod {
                    pods.get(&owner.id).cloned()
                } else {
                    None
                };
                *used.entry(named.unwrap_or(owner)).or_default() += value;
            }
            used
        };
        Ok(self.ask(expression, None, read).await?.unwrap_or_default())
    }

    fn usage_of(self, found: Found) -> FleetUsage {
        let Found {
            owners,
            nodes,
            users,
            namespaces,
            unheld_s,
            unheld_joules,
        } = found;
        let has_energy =
            owners.values().any(|amounts| amounts[2].is_some()) || unheld_joules.is_some();
        let is_used = |amounts: &Amounts| amounts.iter().flatten().any(|used| *used > 0.0);
        let owners = owners.into_iter().filter(|(_, amounts)| is_used(amounts));
        let owners = owners.map(|(owner, amounts)| {
            let nodes = nodes.get(&owner).map_or(0, |count| *count as u32);
            OwnerUsage::new(owner, amounts, nodes)
        });
        let mut usage = FleetUsage {
            unheld_gpu_s: unheld_s,
            unheld_energy_joules: unheld_joules,
            state: self.state(),
            problems: self.problems.clone(),
            ..FleetUsage::empty(self.from_ms, self.to_ms)
        };
        usage.set_owners(owners.collect());
        if let Some(mut users) = users {
            users.retain(|_, amounts| is_used(amounts));
            replace_sums(&mut usage.users, users);
            if usage.unlisted.owners > 0 {
                // The answer about jobs may be incomplete, too.
                let listed: Vec<_> = usage.owners.iter().map(OwnerUsage::amounts).collect();
                let (known, missing) = (
                    usage.unlisted.amounts(),
                    subtract_parts(&usage.users, &listed),
                );
                let larger = |at: usize| {
                    [known[at], missing[at]]
                        .into_iter()
                        .flatten()
                        .reduce(f64::max)
                };
                usage.unlisted.set_amounts([0, 1, 2].map(larger));
            }
        }
        if let Some(mut namespaces) = namespaces {
            let known: Vec<_> = namespaces.values().copied().collect();
            let unknown = subtract_parts(&usage.namespaces, &known);
            if is_used(&unknown) {
                namespaces.insert(None, unknown);
            }
            namespaces.retain(|_, amounts| is_used(amounts));
            replace_sums(&mut usage.namespaces, namespaces);
        }
        let held = sum_known(usage.users.iter().map(|user| user.energy_joules)).unwrap_or(0.0);
        usage.energy_joules = has_energy.then_some(held + unheld_joules.unwrap_or(0.0));
        usage
    }
}

fn add_named(
    sums: &mut Option<Sums<Option<String>>>,
    at: usize,
    values: BTreeMap<Option<String>, f64>,
) {
    for (name, value) in values {
        sums.get_or_insert_default().entry(name).or_default()[at] = Some(value);
    }
}

/// Replaces sums over owners, whose answer may be incomplete, with the sums that Prometheus has
/// calculated.
fn replace_sums(groups: &mut Vec<UsageGroup>, sums: Sums<Option<String>>) {
    let before = std::mem::take(groups);
    let count = |name: &Option<String>| {
        before
            .iter()
            .find(|group| group.name == *name)
            .map_or(0, |group| group.owners)
    };
    groups.extend(sums.into_iter().map(|(name, amounts)| {
        let mut group = UsageGroup {
            owners: count(&name),
            name,
            ..UsageGroup::default()
        };
        group.set_amounts(amounts);
        group
    }));
    sort_groups(groups);
}

/// Returns the usage of the groups minus the usage of their parts. Differences up to a thousandth
/// are ignored, because the queries were answered at different times.
fn subtract_parts(groups: &[UsageGroup], parts: &[Amounts]) -> Amounts {
    [0, 1, 2].map(|at| {
        let all = sum_known(groups.iter().map(|group| group.amounts()[at]))?;
        let rest = all - sum_known(parts.iter().map(|part| part[at])).unwrap_or(0.0);
        Some(if rest > all / 1000.0 { rest } else { 0.0 })
    })
}

/// Returns the pods in an answer, each with one node and its value.
fn pods(answer: &Answer<'_>) -> Vec<(Option<FleetOwner>, f64, f64)> {
    let rows = answer.rows.iter();
    rows.filter_map(|row| Some((pod(&row.labels), 1.0, row.value()?)))
        .collect()
}
