//! The types for a fleet's usage by owner.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{FleetOwner, FleetState, OwnerKind};

/// The maximum number of jobs in a response. Users, namespaces, and notebooks are always listed
/// completely.
const MAX_JOBS: usize = 500;

/// A fleet's usage by owner in a time range: the response of `/api/v1/fleet/usage`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
pub struct FleetUsage {
    /// Start of the time range, in milliseconds since 1970.
    pub from_ms: u64,
    /// End of the time range, in milliseconds since 1970.
    pub to_ms: u64,
    /// Whether all data could be read. If the state is `partial`, all amounts are lower bounds.
    pub state: FleetState,
    /// Problems with the source, each as a sentence with a remedy.
    pub problems: Vec<String>,
    /// The owners, in descending order of GPU time: all users and notebooks, and the 500 jobs,
    /// pods, containers and services with the most GPU time.
    pub owners: Vec<OwnerUsage>,
    /// The total number of owners, including those not listed.
    pub owners_total: u32,
    /// The totals of all owners that are not listed in `owners`.
    #[serde(default)]
    pub unlisted: UsageGroup,
    /// Totals by user over all owners, including unlisted owners, in descending order of GPU time.
    /// The entry whose `name` is `null` covers the unknown users.
    #[serde(default)]
    pub users: Vec<UsageGroup>,
    /// Totals by Kubernetes namespace over all pods, including unlisted pods, in descending order
    /// of GPU time. The entry whose `name` is `null` covers the pods whose namespace is unknown.
    #[serde(default)]
    pub namespaces: Vec<UsageGroup>,
    /// Time during which GPUs had no owner, summed over GPUs, in seconds.
    pub unheld_gpu_s: Option<f64>,
    /// Energy that GPUs used while they had no owner, in joules.
    pub unheld_energy_joules: Option<f64>,
    /// Energy used by all GPUs, in joules.
    pub energy_joules: Option<f64>,
}

/// The usage of one owner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
pub struct OwnerUsage {
    /// The owner that used the GPUs.
    pub owner: FleetOwner,
    /// Time during which the owner used GPUs, summed over GPUs, in seconds.
    pub gpu_s: Option<f64>,
    /// The part of `gpu_s` during which kernels ran, in seconds.
    pub active_gpu_s: Option<f64>,
    /// Energy that the GPUs used during this time, in joules.
    pub energy_joules: Option<f64>,
    /// The number of nodes that the owner used.
    pub nodes: u32,
}

/// The total usage of several owners.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, TS)]
pub struct UsageGroup {
    /// The user or namespace that the owners share; `null` if unknown.
    pub name: Option<String>,
    /// The number of owners.
    pub owners: u32,
    /// Time during which the owners used GPUs, summed over GPUs, in seconds.
    pub gpu_s: Option<f64>,
    /// The part of `gpu_s` during which kernels ran, in seconds.
    pub active_gpu_s: Option<f64>,
    /// Energy that the GPUs used during this time, in joules.
    pub energy_joules: Option<f64>,
}

/// GPU time, active GPU time and energy: the amounts of [`OwnerUsage`] and [`UsageGroup`], in this
/// order.
pub type Amounts = [Option<f64>; 3];

impl FleetUsage {
    /// Creates the response that is used until data has been read for a time range.
    pub fn new_loading(from_ms: u64, to_ms: u64) -> Self {
        Self {
            from_ms,
            to_ms,
            state: FleetState::Loading,
            problems: Vec::new(),
            owners: Vec::new(),
            owners_total: 0,
            unlisted: UsageGroup::default(),
            users: Vec::new(),
            namespaces: Vec::new(),
            unheld_gpu_s: None,
            unheld_energy_joules: None,
            energy_joules: None,
        }
    }

    /// Sets the list of owners and computes the totals by user and by namespace. `owners` must
    /// contain every owner.
    pub fn set_owners(&mut self, mut owners: Vec<OwnerUsage>) {
        owners.sort_by(|a, b| {
            compare_descending(a.gpu_s, b.gpu_s).then_with(|| a.owner.cmp(&b.owner))
        });
        self.owners_total = owners.len() as u32;
        self.users = group_owners(&owners, |owner| Some(owner.user.clone()));
        self.namespaces = group_owners(&owners, |owner| {
            (owner.kind == OwnerKind::Pod).then(|| owner.namespace.clone())
        });
        let mut jobs = 0;
        let is_listed = |usage: &OwnerUsage| {
            let is_job = !matches!(usage.owner.kind, OwnerKind::User | OwnerKind::Notebook);
            jobs += usize::from(is_job);
            !is_job || jobs <= MAX_JOBS
        };
        let (listed, unlisted): (Vec<_>, Vec<_>) = owners.into_iter().partition(is_listed);
        self.owners = listed;
        self.unlisted = UsageGroup::sum_owners(&unlisted);
    }
}

impl OwnerUsage {
    pub fn new(owner: FleetOwner, amounts: Amounts, nodes: u32) -> Self {
        let [gpu_s, active_gpu_s, energy_joules] = amounts;
        Self {
            owner,
            gpu_s,
            active_gpu_s,
            energy_joules,
            nodes,
        }
    }

    pub fn amounts(&self) -> Amounts {
        [self.gpu_s, self.active_gpu_s, self.energy_joules]
    }
}

impl UsageGroup {
    /// Returns the total usage of `owners`.
    pub fn sum_owners<'a>(owners: impl IntoIterator<Item = &'a OwnerUsage>) -> Self {
        let mut sum = Self::default();
        owners.into_iter().for_each(|usage| sum.add(usage));
        sum
    }

    fn add(&mut self, usage: &OwnerUsage) {
        self.owners += 1;
        self.set_amounts(add_amounts(self.amounts(), usage.amounts()));
    }

    pub fn amounts(&self) -> Amounts {
        [self.gpu_s, self.active_gpu_s, self.energy_joules]
    }

    /// Returns this group without the owners and amounts of `part`. The group must include
    /// everything in `part`.
    #[must_use]
    pub fn subtract_part(&self, part: &Self) -> Self {
        let mut rest = Self {
            owners: self.owners.saturating_sub(part.owners),
            ..Self::default()
        };
        let (all, taken) = (self.amounts(), part.amounts());
        if rest.owners > 0 {
            rest.set_amounts(
                [0, 1, 2].map(|at| all[at].map(|all| (all - taken[at].unwrap_or(0.0)).max(0.0))),
            );
        }
        rest
    }

    pub(crate) fn set_amounts(&mut self, amounts: Amounts) {
        [self.gpu_s, self.active_gpu_s, self.energy_joules] = amounts;
    }
}

/// Adds two sets of amounts. An unknown amount counts as zero unless both are unknown.
pub fn add_amounts(a: Amounts, b: Amounts) -> Amounts {
    [0, 1, 2].map(|at| sum_known([a[at], b[at]]))
}

/// Returns the sum of the known values, or `None` if all are unknown.
pub fn sum_known(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    values.into_iter().flatten().reduce(|a, b| a + b)
}

/// Sorts groups by GPU time, in descending order.
pub(crate) fn sort_groups(groups: &mut [UsageGroup]) {
    groups.sort_by(|a, b| compare_descending(a.gpu_s, b.gpu_s).then_with(|| a.name.cmp(&b.name)));
}

fn compare_descending(a: Option<f64>, b: Option<f64>) -> std::cmp::Ordering {
    b.unwrap_or(0.0).total_cmp(&a.unwrap_or(0.0))
}

/// Adds up the usage of all owners for which `name_of` returns the same name. Owners for which it
/// returns `None` are omitted.
fn group_owners(
    owners: &[OwnerUsage],
    name_of: impl Fn(&FleetOwner) -> Option<Option<String>>,
) -> Vec<UsageGroup> {
    let mut groups: BTreeMap<Option<String>, UsageGroup> = BTreeMap::new();
    for usage in owners {
        let Some(name) = name_of(&usage.owner) else {
            continue;
        };
        let group = groups.entry(name.clone()).or_insert_with(|| UsageGroup {
            name,
            ..UsageGroup::default()
        });
        group.add(usage);
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    sort_groups(&mut groups);
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_limit_does_not_affect_totals() {
        let owner = |kind, id: u32| FleetOwner {
            user: Some(format!("u{}", id % 2)),
            kind,
            id: id.to_string(),
            namespace: (kind == OwnerKind::Pod).then(|| "ml".to_owned()),
        };
        let used = |owner, gpu_s: u32| {
            OwnerUsage::new(owner, [Some(f64::from(gpu_s)), None, Some(2.0)], 1)
        };
        let pods = (0..1000).map(|id| used(owner(OwnerKind::Pod, id), 2000 - id));
        let notebooks = (0..700).map(|id| used(owner(OwnerKind::Notebook, id), 1));
        let mut usage = FleetUsage::new_loading(0, 1);
        usage.set_owners(pods.chain(notebooks).collect());
        assert_eq!((usage.owners.len(), usage.owners_total), (1200, 1700));
        let sums = |group: &UsageGroup| {
            (
                group.name.clone(),
                group.owners,
                group.gpu_s,
                group.energy_joules,
            )
        };
        let all: u32 = (0..1000).map(|id| 2000 - id).sum();
        assert_eq!(usage.unlisted.owners, 500);
        assert_eq!(
            usage.unlisted.gpu_s,
            Some(f64::from((500..1000).map(|id| 2000 - id).sum::<u32>()))
        );
        assert_eq!(
            usage.namespaces.iter().map(sums).collect::<Vec<_>>(),
            [(
                Some("ml".to_owned()),
                1000,
                Some(f64::from(all)),
                Some(2000.0)
            )]
        );
        assert_eq!(usage.users.len(), 2);
        assert_eq!(
            sum_known(usage.users.iter().map(|user| user.gpu_s)),
            Some(f64::from(all + 700))
        );
        assert_eq!(
            usage
                .users
                .iter()
                .map(|user| user.active_gpu_s)
                .collect::<Vec<_>>(),
            [None, None]
        );
    }
}
