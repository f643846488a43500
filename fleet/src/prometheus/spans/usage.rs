//! Usage by owner in a time range up to now.
//!
//! If the rules in `deploy/prometheus/fleet.yml` have recorded the usage of every quarter hour, the
//! recorded values are added up. Otherwise, the counters at both ends of the range are compared.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gpumon_probe::{owner::clean_name, units::format_duration};

use super::{REPLICAS, SpanReader, list_base_unit_expressions, to_fresh_value};
use crate::{
    model::{
        Amounts, FleetOwner, FleetUsage, OwnerKind, OwnerUsage, UsageGroup, sort_groups, sum_known,
    },
    prometheus::{
        answer::Answer,
        cached::FreshValue,
        client::QueryError,
        current_fleet::FleetContext,
        labels::{Interner, OWNER_LABELS, read_owner, read_pod},
        metrics::{self, Families},
        query::Source,
    },
    source::Range,
};

/// The time that one recorded sum covers, in seconds: a quarter of an hour.
const RULE_INTERVAL_S: u32 = 900;

/// The minimum range for recorded sums, in seconds. Counters are more precise for shorter ranges.
const MIN_RECORDED_RANGE_S: u32 = 6 * 3600;
const LONGER_RANGE_ADVICE: &str =
    "Choose a range of 6 h or more, for which deploy/prometheus/fleet.yml records this data";

/// A counter that gpumon exports on every node, even if no GPU has an owner.
const UNHELD_COUNTER: &str = "gpumon_unheld_gpu_seconds_total";

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
    (UNHELD_COUNTER, "job:gpumon_unheld_gpu_seconds:increase15m"),
    (
        "gpumon_unheld_energy_joules_total",
        "job:gpumon_unheld_energy_joules:increase15m",
    ),
];
/// The labels that differ between replicas of a Prometheus server that evaluates rules.
const RULE_REPLICAS: &str = "replica, prometheus_replica";
const NODES_RULE: &str = "owner:gpumon_owner_nodes:count15m";

type AmountByOwner = BTreeMap<FleetOwner, f64>;
type Sums<K> = BTreeMap<K, Amounts>;

/// The usage in a time range, by owner, user, and namespace.
#[derive(Default)]
struct UsageSums {
    owners: Sums<FleetOwner>,
    /// For each owner, the number of nodes used.
    nodes: AmountByOwner,
    /// The sums by user, if Prometheus calculated them. The sum with the key `None` is that of
    /// unknown users.
    users: Option<Sums<Option<String>>>,
    /// The sums by namespace, which include only pods whose namespace is known.
    namespaces: Option<Sums<Option<String>>>,
    unheld_s: Option<f64>,
    unheld_joules: Option<f64>,
}

/// The kind of data that the usage is calculated from.
#[derive(Clone, Copy)]
enum Basis {
    /// The values that recording rules have stored.
    Rules,
    /// The increases of counters over this many seconds.
    Counters(u32),
}

pub(in crate::prometheus) async fn read_usage(
    source: Arc<Source>,
    told: FleetContext,
    range: Range,
    before: Option<Arc<FleetUsage>>,
) -> FreshValue<FleetUsage> {
    let reader = SpanReader::new(source, told, range);
    let empty = FleetUsage::new_loading(reader.from_ms, reader.to_ms);
    let period = Duration::from_secs(u64::from(range.seconds() / 96).clamp(60, 1800));
    to_fresh_value(reader.query_usage().await, before, empty, period)
}

impl SpanReader {
    async fn query_usage(mut self) -> Result<FleetUsage, QueryError> {
        let found = if !self.told.families.own {
            self.query_pod_usage().await?
        } else if self.can_use_rules().await? {
            self.query_usage_from_rules().await?
        } else {
            self.query_usage_from_counters().await?
        };
        if self.told.families.own && self.told.families.has_dcgm() {
            self.add_problem(
                "The usage of nodes that run only dcgm-exporter is left out; run gpumon on these \
                 nodes"
                    .to_owned(),
            );
        }
        self.check_any_query_answered()?;
        Ok(self.build_usage(found))
    }

    /// Returns `true` if the values from recording rules can be used. They must cover nearly all of
    /// the time range. They are not used for a short range, because they lack the most recent
    /// minutes, or if two jobs scrape the same GPU, because they count it twice.
    async fn can_use_rules(&mut self) -> Result<bool, QueryError> {
        if self.told.is_doubled || self.range.seconds() < MIN_RECORDED_RANGE_S {
            return Ok(false);
        }
        let rule = self.build_metric_selector(UNHELD_COUNTERS[0].1, "");
        let count = self
            .query_number(&format!(
                "max(count_over_time({rule}[{}s]))",
                self.range.seconds()
            ))
            .await?;
        let expected = f64::from(self.range.seconds() / RULE_INTERVAL_S);
        let is_recorded = count.is_some_and(|count| count >= (expected * 0.9).floor().max(1.0));
        if let Some(count) = count.filter(|count| is_recorded && *count < expected) {
            self.add_problem(format!(
                "The recording rules in deploy/prometheus/fleet.yml have recorded only {count} \
                 of {expected} quarter-hour intervals; the rest of the time is left out"
            ));
        }
        Ok(is_recorded)
    }

    async fn query_usage_from_rules(&mut self) -> Result<UsageSums, QueryError> {
        self.move_end_to_rules().await?;
        let range = self.range.seconds();
        let mut found = self.query_sums(Basis::Rules).await?;
        let nodes = format!(
            "max_over_time({}[{range}s])",
            self.build_metric_selector(NODES_RULE, "")
        );
        let nodes = format!(
            "max by ({OWNER_LABELS}, exported_container) (max without ({RULE_REPLICAS}) ({nodes}))"
        );
        found.nodes = self.query_by_owner(&nodes).await?;
        self.query_unheld_usage(Basis::Rules, &mut found).await?;
        let unheld = format!(
            "{}[{range}s:{RULE_INTERVAL_S}s]",
            self.build_metric_selector(UNHELD_COUNTER, "")
        );
        let quarters = range / RULE_INTERVAL_S;
        let gaps = format!("count(count_over_time({unheld}) < {quarters} or resets({unheld}) > 0)");
        if let Some(problem) = self
            .query_node_problem(
                &gaps,
                "restarted gpumon or was not scraped for part of the time; some of its usage \
                 during this period is left out",
                "restarted gpumon or were not scraped for part of the time; some of their usage \
                 during this period is left out",
            )
            .await?
        {
            self.add_problem(problem);
        }
        Ok(found)
    }

    /// Moves the end of the range back to the newest recorded quarter hour, because the recording
    /// rules have no later values.
    async fn move_end_to_rules(&mut self) -> Result<(), QueryError> {
        let rule = self.build_metric_selector(UNHELD_COUNTERS[0].1, "");
        let newest = format!(
            "max(max_over_time(timestamp({rule})[{}s:60s]))",
            RULE_INTERVAL_S + 300
        );
        let newest_ms = self
            .query_number(&newest)
            .await?
            .map(|seconds| (seconds * 1000.0) as u64);
        let is_recent = |ms: &u64| {
            (self
                .to_ms
                .saturating_sub(2 * u64::from(RULE_INTERVAL_S) * 1000)..=self.to_ms)
                .contains(ms)
        };
        if let Some(newest_ms) = newest_ms.filter(is_recent) {
            self.from_ms -= self.to_ms - newest_ms;
            self.to_ms = newest_ms;
        }
        Ok(())
    }

    async fn query_usage_from_counters(&mut self) -> Result<UsageSums, QueryError> {
        let range = self.query_covered_range().await?;
        let mut found = self.query_sums(Basis::Counters(range)).await?;
        let held = format!(
            "max without ({REPLICAS}) ({} > 0)",
            self.build_increase_query(COUNTERS[0].0, "", range)
        );
        found.nodes = self
            .query_by_owner(&format!(
                "count by ({OWNER_LABELS}, exported_container) ({held})"
            ))
            .await?;
        self.query_unheld_usage(Basis::Counters(range), &mut found)
            .await?;
        let unheld = self.build_metric_selector(UNHELD_COUNTER, "");
        for (operator, one, several) in [
            (
                "<",
                "restarted gpumon; its usage before the restart is left out",
                "restarted gpumon; their usage before the restart is left out",
            ),
            (
                "unless",
                "was not scraped at the start of the time range; its usage is left out",
                "were not scraped at the start of the time range; their usage is left out",
            ),
        ] {
            let missing = format!("count({unheld} {operator} {unheld} offset {range}s)");
            let Some(problem) = self.query_node_problem(&missing, one, several).await? else {
                continue;
            };
            let cure = if self.range.seconds() < MIN_RECORDED_RANGE_S {
                LONGER_RANGE_ADVICE
            } else {
                self.explain_missing_rules().await?
            };
            self.add_problem(format!("{problem}. {cure}"));
        }
        Ok(found)
    }

    /// Reads the usage of owners, users, and namespaces. Prometheus itself calculates the sums by
    /// user and namespace, so they are complete for any number of jobs.
    async fn query_sums(&mut self, basis: Basis) -> Result<UsageSums, QueryError> {
        let mut found = UsageSums::default();
        let namespaces = self.build_pod_namespace_query();
        for (at, names) in COUNTERS.into_iter().enumerate() {
            let query = |further: &str| self.build_amount_query(basis, names, further);
            let jobs = format!(
                "sum by ({OWNER_LABELS}, exported_container) ({})",
                query("notebook=\"\"")
            );
            let notebooks = format!("sum by (user, notebook) ({})", query("notebook!=\"\""));
            let users = format!("sum by (user) ({})", query(""));
            for (owner, value) in self.query_by_owner(&jobs).await? {
                found.owners.entry(owner).or_default()[at] = Some(value);
            }
            for (owner, value) in self.query_by_owner(&notebooks).await? {
                if owner.kind == OwnerKind::Notebook {
                    found.owners.entry(owner).or_default()[at] = Some(value);
                }
            }
            add_namespaces(
                &mut found.users,
                at,
                self.query_by_label(&users, "user").await?,
            );
            if found
                .owners
                .keys()
                .any(|owner| owner.kind == OwnerKind::Pod)
            {
                let of_pods = self.build_amount_query(basis, names, "pod_uid!=\"\"");
                let sums = format!(
                    "sum by (namespace) ({of_pods} * on (pod_uid) group_left (namespace) \
                     {namespaces})"
                );
                add_namespaces(
                    &mut found.namespaces,
                    at,
                    self.query_by_label(&sums, "namespace").await?,
                );
            }
        }
        let omitted = format!(
            "count({} > 0)",
            self.build_metric_selector("gpumon_owners_omitted", "")
        );
        if let Some(problem) = self
            .query_node_problem(
                &omitted,
                "has had more than 500 owners (such as users, jobs and pods) since gpumon \
                 started; its metrics leave out those that used the least energy",
                "have had more than 500 owners (such as users, jobs and pods) since gpumon \
                 started; their metrics leave out those that used the least energy",
            )
            .await?
        {
            self.add_problem(problem);
        }
        Ok(found)
    }

    /// Reads the usage of GPUs that no process uses.
    async fn query_unheld_usage(
        &mut self,
        basis: Basis,
        found: &mut UsageSums,
    ) -> Result<(), QueryError> {
        for (at, names) in UNHELD_COUNTERS.into_iter().enumerate() {
            let sum = format!("sum({})", self.build_amount_query(basis, names, ""));
            *[&mut found.unheld_s, &mut found.unheld_joules][at] = self.query_number(&sum).await?;
        }
        Ok(())
    }

    /// Counts nodes with `query`, and returns a sentence that starts with their number. Returns
    /// `None` if there are none. `one` is the rest of the sentence if the number is one; otherwise,
    /// `several` is used.
    async fn query_node_problem(
        &mut self,
        query: &str,
        one: &str,
        several: &str,
    ) -> Result<Option<String>, QueryError> {
        let count = self.query_number(query).await?;
        Ok(count.filter(|count| *count > 0.0).map(|count| {
            if count.total_cmp(&1.0).is_eq() {
                format!("1 node {one}")
            } else {
                format!("{count} nodes {several}")
            }
        }))
    }

    /// Returns the query for one of the amounts, which has a counter and a recording rule. Data
    /// that several replicas have is counted once.
    fn build_amount_query(
        &self,
        basis: Basis,
        (counter, rule): (&str, &str),
        further: &str,
    ) -> String {
        match basis {
            Basis::Rules => {
                let range = self.range.seconds();
                format!(
                    "max without ({RULE_REPLICAS}) (sum_over_time({}[{range}s]))",
                    self.build_metric_selector(rule, further)
                )
            }
            Basis::Counters(range) => {
                format!(
                    "max without ({REPLICAS}) ({})",
                    self.build_increase_query(counter, further, range)
                )
            }
        }
    }

    /// Returns the query for the namespace of each pod in the range, because gpumon's counters
    /// contain only the pod's UID. Prometheus may add the labels of the pod that it scrapes. The
    /// labels of the pod that uses the GPU then start with `exported_`.
    fn build_pod_namespace_query(&self) -> String {
        let is_recorded = self.told.gpus > self.source.settings.gpus_most;
        let jobs = if is_recorded {
            "instance:gpumon_gpu_job_info:count"
        } else {
            "gpumon_gpu_job_info"
        };
        let exported = self.build_metric_selector(jobs, "pod_uid!=\"\",exported_namespace!=\"\"");
        let own = "pod_uid!=\"\",namespace!=\"\",exported_namespace=\"\",exported_pod=\"\",exported_container=\"\",\
                   container!~\".*(gpumon|exporter).*\"";
        let own = self.build_metric_selector(jobs, own);
        let step = (self.range.seconds() / 96).max(60);
        // The query covers more than the requested range. Recorded sums can lag by half an hour, so
        // they can include pods that ended around the start of the range.
        let range = self.range.seconds() + 2 * step.max(RULE_INTERVAL_S);
        format!(
            "topk by (pod_uid) (1, group by (pod_uid, namespace) \
             (max_over_time((label_replace({exported}, \"namespace\", \"$1\", \
             \"exported_namespace\", \"(.*)\") or {own})[{range}s:{step}s])))"
        )
    }

    /// Returns the sums by the value of one label. The key `None` stands for series without the
    /// label.
    async fn query_by_label(
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
        self.send_query(expression, None, read).await
    }

    /// Returns the query for the increase of a counter over the last `range_s` seconds. If the
    /// counter is new or was reset, the increase is its current value. In this case, its node must
    /// have been scraped at the start of the range; otherwise, the increase is unknown.
    fn build_increase_query(&self, counter: &str, further: &str, range_s: u32) -> String {
        let (counter, unheld) = (
            self.build_metric_selector(counter, further),
            self.build_metric_selector(UNHELD_COUNTER, ""),
        );
        format!(
            "((({counter} - {counter} offset {range_s}s) >= 0) \
             or {counter} and on (job, instance) {unheld} offset {range_s}s)"
        )
    }

    /// Returns the length of the range in seconds, shortened to the part in which most nodes were
    /// scraped.
    async fn query_covered_range(&mut self) -> Result<u32, QueryError> {
        let unheld = self.build_metric_selector(UNHELD_COUNTER, "");
        let now = self
            .query_number(&format!("count({unheld})"))
            .await?
            .unwrap_or(0.0);
        let mut range = self.range.seconds();
        while range >= 2 * 60 {
            let then = self
                .query_number(&format!("count({unheld} offset {range}s)"))
                .await?
                .unwrap_or(0.0);
            if then >= now / 2.0 {
                break;
            }
            range /= 2;
        }
        if range < self.range.seconds() {
            self.from_ms = self.to_ms.saturating_sub(u64::from(range) * 1000);
            let [all, known] = [self.range.seconds(), range]
                .map(|seconds| format_duration(u64::from(seconds) * 1000));
            self.add_problem(format!(
                "Prometheus has less than {all} of data from most nodes; the usage shown covers \
                 only the last {known}"
            ));
        }
        Ok(range)
    }

    /// Calculates the usage of pods from dcgm-exporter's samples.
    async fn query_pod_usage(&mut self) -> Result<UsageSums, QueryError> {
        let (range, mut found) = (self.range.seconds(), UsageSums::default());
        let step = (range / 96).max(300);
        let Some([utilization, power]) =
            self.build_reading_expressions([metrics::UTILIZATION, metrics::POWER])
        else {
            return Ok(found);
        };
        let sums = [
            ("count_over_time", &utilization),
            ("sum_over_time", &utilization),
            ("sum_over_time", &power),
        ];
        let labels = "pod, namespace, container, exported_pod, exported_namespace, \
                      exported_container, Hostname, hostname, instance";
        for (at, (function, of)) in sums.into_iter().enumerate() {
            let all = format!("sum by ({labels}) ({function}({of}[{range}s:{step}s]) * {step})");
            let rows = self.send_query(&all, None, read_pod_values).await?;
            for (pod, seconds) in rows {
                match (pod, at) {
                    (Some(pod), _) => {
                        if at == 0 {
                            *found.nodes.entry(pod.clone()).or_default() += 1.0;
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

    /// Returns an expression for each reading in `ids` from dcgm-exporter's metrics. The values are
    /// in base units, with percentages as fractions.
    fn build_reading_expressions<const N: usize>(&self, ids: [&str; N]) -> Option<[String; N]> {
        let families = Families {
            own: false,
            ..self.told.families
        };
        let of = |id: &str| {
            let names = list_base_unit_expressions(id, families, &self.source.matchers);
            (!names.is_empty()).then(|| format!("({})", names.join(" or ")))
        };
        let all: Vec<_> = ids.into_iter().filter_map(of).collect();
        all.try_into().ok()
    }

    async fn query_by_owner(&mut self, expression: &str) -> Result<AmountByOwner, QueryError> {
        let pods = Arc::clone(&self.told.pods);
        let read = move |answer: &Answer<'_>| {
            let mut interner = Interner::new(None);
            let mut used = AmountByOwner::new();
            for row in &answer.rows {
                let Some((owner, value)) = read_owner(&row.labels, &mut interner).zip(row.value())
                else {
                    continue;
                };
                // Only running pods have a known name. All other pods are listed by UID.
                let named = if owner.kind == OwnerKind::Pod {
                    pods.get(&owner.id).cloned()
                } else {
                    None
                };
                *used.entry(named.unwrap_or(owner)).or_default() += value;
            }
            used
        };
        self.send_query(expression, None, read).await
    }

    fn build_usage(self, found: UsageSums) -> FleetUsage {
        let UsageSums {
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
            ..FleetUsage::new_loading(self.from_ms, self.to_ms)
        };
        usage.set_owners(owners.collect());
        if let Some(mut users) = users {
            users.retain(|_, amounts| is_used(amounts));
            replace_sums(&mut usage.users, users);
            if usage.unlisted.owners > 0 {
                // The list of owners may be incomplete. The usage of unlisted owners is therefore
                // also calculated from the users' totals, and the larger of the two results is
                // used.
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

fn add_namespaces(
    sums: &mut Option<Sums<Option<String>>>,
    at: usize,
    values: BTreeMap<Option<String>, f64>,
) {
    for (name, value) in values {
        sums.get_or_insert_default().entry(name).or_default()[at] = Some(value);
    }
}

/// Replaces the sums calculated from a possibly incomplete list of owners with the sums that
/// Prometheus calculated.
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

/// Returns the usage of `groups` minus the usage of `parts`. The two were queried at different
/// times, so a difference below a thousandth of the total counts as zero.
fn subtract_parts(groups: &[UsageGroup], parts: &[Amounts]) -> Amounts {
    [0, 1, 2].map(|at| {
        let all = sum_known(groups.iter().map(|group| group.amounts()[at]))?;
        let rest = all - sum_known(parts.iter().map(|part| part[at])).unwrap_or(0.0);
        Some(if rest > all / 1000.0 { rest } else { 0.0 })
    })
}

/// Returns the pod and the value of each series in a response. Each series of a pod counts as one
/// node.
fn read_pod_values(answer: &Answer<'_>) -> Vec<(Option<FleetOwner>, f64)> {
    let rows = answer.rows.iter();
    rows.filter_map(|row| Some((read_pod(&row.labels), row.value()?)))
        .collect()
}
