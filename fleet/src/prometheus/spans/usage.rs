//! Who used how much, until now.
//!
//! Where the rules of `deploy/prometheus/fleet.yml` have recorded what was used in each quarter of an hour, these are added
//! up. Otherwise counters are compared at both ends of the span.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use gpumon_probe::units::duration;

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
    model::{FleetOwner, FleetState, FleetUsage, OwnerKind, OwnerUsage},
    reader::Range,
};

/// So many owners are listed.
const MOST: usize = 500;

/// Seconds of which each rule has one sum.
const RULES_S: u32 = 900;

/// Of shorter spans counters say more, in seconds.
const RECORDED_S: u32 = 6 * 3600;
const CHOOSE_LONGER: &str = "Choose a range of 6 h or more, of which deploy/prometheus/fleet.yml records it";

/// Told by each of gpumon's nodes, whoever uses them.
const UNHELD: &str = "gpumon_unheld_gpu_seconds_total";

/// What was used of each metric.
const COUNTERS: [(&str, &str); 3] = [
    ("gpumon_owner_gpu_seconds_total", "owner:gpumon_owner_gpu_seconds:increase15m"),
    ("gpumon_owner_active_gpu_seconds_total", "owner:gpumon_owner_active_gpu_seconds:increase15m"),
    ("gpumon_owner_energy_joules_total", "owner:gpumon_owner_energy_joules:increase15m"),
];
const UNHELD_COUNTERS: [(&str, &str); 2] = [
    (UNHELD, "job:gpumon_unheld_gpu_seconds:increase15m"),
    ("gpumon_unheld_energy_joules_total", "job:gpumon_unheld_energy_joules:increase15m"),
];
const NODES_RULE: &str = "owner:gpumon_owner_nodes:count15m";

type ByOwner = BTreeMap<FleetOwner, f64>;

/// What each was found to have used.
#[derive(Default)]
struct Found {
    gpu_s: ByOwner,
    active_s: ByOwner,
    joules: ByOwner,
    nodes: ByOwner,
    unheld_s: Option<f64>,
    unheld_joules: Option<f64>,
}

pub(in crate::prometheus) async fn read(
    source: Arc<Source>,
    told: Told,
    range: Range,
    before: Option<Arc<FleetUsage>>,
) -> Fresh<FleetUsage> {
    let reader = SpanReader::new(source, told, range);
    let empty = empty(&reader);
    let period = Duration::from_secs(u64::from(range.seconds() / 96).clamp(60, 1800));
    fresh(reader.usage().await, before, empty, period)
}

/// Nothing is known yet.
pub(in crate::prometheus) fn nothing(source: &Arc<Source>, range: Range) -> FleetUsage {
    empty(&SpanReader::new(Arc::clone(source), Told::default(), range))
}

fn empty(reader: &SpanReader) -> FleetUsage {
    FleetUsage {
        from_ms: reader.from_ms,
        to_ms: reader.to_ms,
        state: FleetState::Loading,
        problems: Vec::new(),
        owners: Vec::new(),
        owners_total: 0,
        unheld_gpu_s: None,
        unheld_energy_joules: None,
        energy_joules: None,
    }
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
        Ok(self.usage_of(&found))
    }

    /// Whether rules have recorded nearly all of the span. They do not tell of the last minutes, which are much of a short
    /// one, and two jobs that scrape the same are added up there.
    async fn has_rules(&mut self) -> Result<bool, QueryError> {
        if self.told.is_doubled || self.range.seconds() < RECORDED_S {
            return Ok(false);
        }
        let rule = self.metric(UNHELD_COUNTERS[0].1, "");
        let count = self.ask_number(&format!("max(count_over_time({rule}[{}s]))", self.range.seconds())).await?;
        let expected = f64::from(self.range.seconds() / RULES_S);
        Ok(count.is_some_and(|count| count >= (expected * 0.9).floor().max(1.0)))
    }

    async fn by_rules(&mut self) -> Result<Found, QueryError> {
        let range = self.range.seconds();
        let mut found = Found::default();
        for (at, rule) in COUNTERS.iter().map(|(_, rule)| *rule).chain([NODES_RULE]).enumerate() {
            let (function, sum) = if rule == NODES_RULE { ("max_over_time", "max") } else { ("sum_over_time", "sum") };
            let rule = self.metric(rule, "");
            let once = format!("max without (replica, prometheus_replica) ({function}({rule}[{range}s]))");
            let used = self.by_owner(&format!("{sum} by ({OWNER_LABELS}, exported_container) ({once})")).await?;
            *[&mut found.gpu_s, &mut found.active_s, &mut found.joules, &mut found.nodes][at] = used;
        }
        for (at, (_, rule)) in UNHELD_COUNTERS.into_iter().enumerate() {
            let rule = self.metric(rule, "");
            let once = format!("max without (replica, prometheus_replica) (sum_over_time({rule}[{range}s]))");
            *[&mut found.unheld_s, &mut found.unheld_joules][at] = self.ask_number(&format!("sum({once})")).await?;
        }
        Ok(found)
    }

    async fn by_counters(&mut self) -> Result<Found, QueryError> {
        let range = self.known_range().await?;
        let mut found = Found::default();
        for (at, (counter, _)) in COUNTERS.into_iter().enumerate() {
            let used = self.increase(counter, range);
            let sum = format!("sum by ({OWNER_LABELS}, exported_container) (max without ({REPLICAS}) ({used}))");
            *[&mut found.gpu_s, &mut found.active_s, &mut found.joules][at] = self.by_owner(&sum).await?;
        }
        let held = format!("max without ({REPLICAS}) ({} > 0)", self.increase(COUNTERS[0].0, range));
        found.nodes = self.by_owner(&format!("count by ({OWNER_LABELS}, exported_container) ({held})")).await?;
        for (at, (counter, _)) in UNHELD_COUNTERS.into_iter().enumerate() {
            let used = self.increase(counter, range);
            let sum = self.ask_number(&format!("sum(max without ({REPLICAS}) ({used}))")).await?;
            *[&mut found.unheld_s, &mut found.unheld_joules][at] = sum;
        }
        let unheld = self.metric(UNHELD, "");
        for (operator, what) in [
            ("<", "have restarted gpumon, and what was used there before that is left out"),
            ("unless", "were not scraped when the span began, and what was used there is left out"),
        ] {
            let count = self.ask_number(&format!("count({unheld} {operator} {unheld} offset {range}s)")).await?;
            let Some(count) = count.filter(|count| *count > 0.0) else { continue };
            let cure = if self.range.seconds() < RECORDED_S { CHOOSE_LONGER } else { self.unrecorded().await? };
            self.problem(format!("{count} nodes {what}. {cure}"));
        }
        Ok(found)
    }

    /// What a counter has risen since then. One that began anew has risen by what it is, where its node was read before;
    /// where it was not, nobody knows how much of it is of the span.
    fn increase(&self, counter: &str, range_s: u32) -> String {
        let (counter, unheld) = (self.metric(counter, ""), self.metric(UNHELD, ""));
        format!(
            "((({counter} - {counter} offset {range_s}s) >= 0) \
             or {counter} and on (job, instance) {unheld} offset {range_s}s)"
        )
    }

    /// The span, or as much of it as most nodes were read in.
    async fn known_range(&mut self) -> Result<u32, QueryError> {
        let unheld = self.metric(UNHELD, "");
        let now = self.ask_number(&format!("count({unheld})")).await?.unwrap_or(0.0);
        let mut range = self.range.seconds();
        while range >= 2 * 60 {
            let then = self.ask_number(&format!("count({unheld} offset {range}s)")).await?.unwrap_or(0.0);
            if then >= now / 2.0 {
                break;
            }
            range /= 2;
        }
        if range < self.range.seconds() {
            self.from_ms = self.to_ms.saturating_sub(u64::from(range) * 1000);
            let [all, known] = [self.range.seconds(), range].map(|seconds| duration(u64::from(seconds) * 1000));
            self.problem(format!("Prometheus has read most nodes for less than {all}; this is of the last {known}"));
        }
        Ok(range)
    }

    /// What pods used, of which dcgm-exporter tells at some moments.
    async fn by_pods(&mut self) -> Result<Found, QueryError> {
        let (range, mut found) = (self.range.seconds(), Found::default());
        let step = (range / 96).max(300);
        let Some([utilization, power]) = self.readings([metrics::UTILIZATION, metrics::POWER]) else {
            return Ok(found);
        };
        let sums = [("count_over_time", &utilization), ("sum_over_time", &utilization), ("sum_over_time", &power)];
        let labels = "pod, namespace, container, exported_pod, exported_namespace, exported_container, Hostname, hostname, \
                      instance";
        for (at, (function, of)) in sums.into_iter().enumerate() {
            let all = format!("sum by ({labels}) ({function}({of}[{range}s:{step}s]) * {step})");
            let Some(rows) = self.ask(&all, None, pods).await? else { continue };
            for (pod, node, seconds) in rows {
                match (pod, at) {
                    (Some(pod), 0) => {
                        *found.gpu_s.entry(pod.clone()).or_default() += seconds;
                        *found.nodes.entry(pod).or_default() += node;
                    }
                    (Some(pod), 1) => *found.active_s.entry(pod).or_default() += seconds,
                    (Some(pod), _) => *found.joules.entry(pod).or_default() += seconds,
                    (None, 0) => *found.unheld_s.get_or_insert(0.0) += seconds,
                    (None, 2) => *found.unheld_joules.get_or_insert(0.0) += seconds,
                    (None, _) => {}
                }
            }
        }
        Ok(found)
    }

    /// These readings of dcgm-exporter in base units: a share is one of one.
    fn readings<const N: usize>(&self, ids: [&str; N]) -> Option<[String; N]> {
        let families = Families { own: false, ..self.told.families };
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
                let Some((owner, value)) = owner(&row.labels, &mut interner).zip(row.value()) else { continue };
                // A pod that still runs has a name.
                let named = if owner.kind == OwnerKind::Pod { pods.get(&owner.id).cloned() } else { None };
                *used.entry(named.unwrap_or(owner)).or_default() += value;
            }
            used
        };
        Ok(self.ask(expression, None, read).await?.unwrap_or_default())
    }

    fn usage_of(self, found: &Found) -> FleetUsage {
        let energy = found.joules.values().sum::<f64>() + found.unheld_joules.unwrap_or(0.0);
        let names: BTreeSet<_> = [&found.gpu_s, &found.active_s, &found.joules]
            .into_iter()
            .flat_map(BTreeMap::iter)
            .filter(|(_, used)| **used > 0.0)
            .map(|(owner, _)| owner)
            .collect();
        let usage = |owner: &FleetOwner| OwnerUsage {
            gpu_s: found.gpu_s.get(owner).copied(),
            active_gpu_s: found.active_s.get(owner).copied(),
            energy_joules: found.joules.get(owner).copied(),
            nodes: found.nodes.get(owner).map_or(0, |count| *count as u32),
            owner: owner.clone(),
        };
        let mut owners: Vec<_> = names.iter().map(|owner| usage(owner)).collect();
        let used = |usage: &OwnerUsage| usage.gpu_s.unwrap_or(0.0);
        owners.sort_by(|a, b| used(b).total_cmp(&used(a)).then_with(|| a.owner.cmp(&b.owner)));
        let owners_total = owners.len() as u32;
        owners.truncate(MOST);
        let has_energy = !found.joules.is_empty() || found.unheld_joules.is_some();
        FleetUsage {
            owners,
            owners_total,
            unheld_gpu_s: found.unheld_s,
            unheld_energy_joules: found.unheld_joules,
            energy_joules: has_energy.then_some(energy),
            state: self.state(),
            problems: self.problems.clone(),
            ..empty(&self)
        }
    }
}

/// Who, on how many nodes, and how much.
fn pods(answer: &Answer<'_>) -> Vec<(Option<FleetOwner>, f64, f64)> {
    let rows = answer.rows.iter();
    rows.filter_map(|row| Some((pod(&row.labels), 1.0, row.value()?))).collect()
}
