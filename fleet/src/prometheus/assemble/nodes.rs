//! Grouping of Prometheus targets into nodes, and naming of nodes.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use super::super::facts::{Fact, FactDetail};
use crate::{
    discovery::join_host_and_port, hosts::list::compare_names, prometheus::labels::Target,
};

/// The nodes of a fleet, sorted by name.
#[derive(Debug, Default)]
pub(in crate::prometheus) struct Nodes {
    pub(super) names: Vec<String>,
    /// The targets of each node. The first target determines the node's name. A node that has
    /// disappeared has no targets.
    pub(super) targets: Vec<Vec<Arc<Target>>>,
    by_target: HashMap<Arc<Target>, usize>,
    by_instance: HashMap<(Arc<str>, Arc<str>), usize>,
    by_host: HashMap<(Arc<str>, Arc<str>), Vec<usize>>,
}

/// The data about one target from all series.
#[derive(Default)]
struct TargetFacts {
    gpus: BTreeMap<u32, Arc<str>>,
    is_own: bool,
    is_now: bool,
    is_simulated: bool,
}

impl TargetFacts {
    /// Returns a sort key that orders a node's targets. The first target determines the node's
    /// name.
    fn sort_key(&self) -> [bool; 3] {
        [!self.is_own, self.gpus.is_empty(), !self.is_now]
    }
}

impl Nodes {
    /// Groups the targets of `facts` into nodes. Each fact comes with a flag for whether it is
    /// current.
    pub(super) fn new<'f>(facts: impl Iterator<Item = (bool, &'f Fact)>) -> Self {
        let mut known: HashMap<Arc<Target>, TargetFacts> = HashMap::new();
        for (is_now, fact) in facts {
            // A target is cloned only for its first fact.
            if !known.contains_key(&fact.target) {
                known.insert(Arc::clone(&fact.target), TargetFacts::default());
            }
            let Some(target) = known.get_mut(&fact.target) else {
                continue;
            };
            target.is_now |= is_now;
            target.is_own |= !fact.family.is_dcgm();
            target.is_simulated |= matches!(fact.more, FactDetail::Model(_, true));
            if let Some(gpu) = fact.gpu.filter(|_| !fact.uuid.is_empty() && !fact.is_part) {
                target
                    .gpus
                    .entry(gpu)
                    .or_insert_with(|| Arc::clone(&fact.uuid));
            }
        }
        let mut known: Vec<_> = known.into_iter().collect();
        // The first target names the node. gpumon's targets therefore come first, and current names
        // are preferred to old ones.
        known.sort_by(|(a, of_a), (b, of_b)| {
            of_a.sort_key().cmp(&of_b.sort_key()).then_with(|| a.cmp(b))
        });
        let groups = group_targets_by_node(known);
        let mut named: Vec<_> = choose_node_names(&groups).into_iter().zip(groups).collect();
        named.sort_by(|(a, _), (b, _)| compare_names(a, b));
        let mut nodes = Self::default();
        for (name, targets) in named {
            nodes.add_node(name, targets);
        }
        nodes
    }

    fn add_node(&mut self, name: String, targets: Vec<Arc<Target>>) {
        let at = self.names.len();
        for target in &targets {
            self.by_target.insert(Arc::clone(target), at);
            self.by_instance.insert(
                (Arc::clone(&target.cluster), Arc::clone(&target.instance)),
                at,
            );
            let same = self
                .by_host
                .entry((Arc::clone(&target.cluster), Arc::clone(&target.host)))
                .or_default();
            if !same.contains(&at) {
                same.push(at);
            }
        }
        self.names.push(name);
        self.targets.push(targets);
    }

    /// Returns the targets of the node called `name`, or `None` if the fleet has no such node.
    pub(in crate::prometheus) fn find_targets(&self, name: &str) -> Option<&[Arc<Target>]> {
        let at = self.names.iter().position(|known| known == name)?;
        let targets = self.targets[at].as_slice();
        (!targets.is_empty()).then_some(targets)
    }

    /// Returns the name of `target`'s node.
    pub(in crate::prometheus) fn node_name<'a>(&'a self, target: &'a Target) -> &'a str {
        let node = self
            .find_node_of_target(target)
            .map(|at| self.names[at].as_str());
        node.unwrap_or(&target.host)
    }

    /// Returns the position of the node to which `target` belongs.
    pub(super) fn find_node_of_target(&self, target: &Target) -> Option<usize> {
        let exact = self.by_target.get(target).copied();
        let instance = || {
            self.by_instance
                .get(&(Arc::clone(&target.cluster), Arc::clone(&target.instance)))
                .copied()
        };
        let host = || match self
            .by_host
            .get(&(Arc::clone(&target.cluster), Arc::clone(&target.host)))?
            .as_slice()
        {
            [only] => Some(*only),
            _ => None,
        };
        exact.or_else(instance).or_else(host)
    }
}

/// The targets of one node, and the UUIDs of its GPUs.
type NodeTargets = (Vec<Arc<Target>>, BTreeMap<u32, Arc<str>>);

/// Groups targets that belong to the same node.
fn group_targets_by_node(known: Vec<(Arc<Target>, TargetFacts)>) -> Vec<Vec<Arc<Target>>> {
    let mut groups: Vec<NodeTargets> = Vec::new();
    let mut by_uuid: HashMap<(u32, Arc<str>), usize> = HashMap::new();
    let mut by_host: HashMap<(Arc<str>, Arc<str>), Vec<usize>> = HashMap::new();
    for (target, of) in known {
        let host = (Arc::clone(&target.cluster), Arc::clone(&target.host));
        let mut uuids = of.gpus.iter().map(|(gpu, uuid)| (*gpu, Arc::clone(uuid)));
        // Two targets that export the same GPU belong to one node that has two names or ports. This
        // does not apply to simulated GPUs, because several machines can simulate the same GPU.
        let by_gpu = if of.is_simulated {
            None
        } else {
            uuids.find_map(|gpu| by_uuid.get(&gpu).copied())
        };
        let same_host = || {
            let [only] = by_host.get(&host)?.as_slice() else {
                return None;
            };
            let is_other = |(gpu, uuid): (&u32, &Arc<str>)| {
                groups[*only].1.get(gpu).is_some_and(|known| known != uuid)
            };
            let fits = of.gpus.is_empty() || (!of.is_own && !of.gpus.iter().any(is_other));
            fits.then_some(*only)
        };
        let at = by_gpu.or_else(same_host).unwrap_or(groups.len());
        if at == groups.len() {
            groups.push((Vec::new(), BTreeMap::new()));
        }
        if !of.is_simulated {
            by_uuid.extend(
                of.gpus
                    .iter()
                    .map(|(gpu, uuid)| ((*gpu, Arc::clone(uuid)), at)),
            );
        }
        groups[at].1.extend(of.gpus);
        groups[at].0.push(target);
        let same = by_host.entry(host).or_default();
        if !same.contains(&at) {
            same.push(at);
        }
    }
    groups.into_iter().map(|(targets, _)| targets).collect()
}

/// Returns the names of nodes. A name is the host. The port is added if several nodes have the same
/// host, and the cluster is added if the host exists in several clusters.
fn choose_node_names(groups: &[Vec<Arc<Target>>]) -> Vec<String> {
    let mut hosts: HashMap<(&str, &str), u32> = HashMap::new();
    let mut clusters: HashMap<&str, BTreeSet<&str>> = HashMap::new();
    for first in groups.iter().filter_map(|targets| targets.first()) {
        *hosts.entry((&first.cluster, &first.host)).or_default() += 1;
        clusters
            .entry(&first.host)
            .or_default()
            .insert(&first.cluster);
    }
    let mut taken = BTreeSet::new();
    let name = |targets: &Vec<Arc<Target>>| {
        let Some(first) = targets.first() else {
            return String::new();
        };
        let mut name = first.host.to_string();
        if let (Some(2..), Some(port)) = (hosts.get(&(&*first.cluster, &*first.host)), first.port) {
            name = join_host_and_port(&name, port);
        }
        if clusters.get(&*first.host).is_some_and(|all| all.len() > 1) && !first.cluster.is_empty()
        {
            name = format!("{name}@{}", first.cluster);
        }
        let plain = name.clone();
        let mut number = 2;
        while !taken.insert(name.clone()) {
            name = format!("{plain}~{number}");
            number += 1;
        }
        name
    };
    groups.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::super::metrics::Family, *};

    fn build_target(cluster: &str, host: &str, port: Option<u16>) -> Arc<Target> {
        let instance = port.map_or_else(
            || format!("10.0.0.1:9400/{host}"),
            |port| format!("{host}:{port}"),
        );
        Arc::new(Target {
            cluster: cluster.into(),
            host: host.into(),
            port,
            instance: instance.into(),
        })
    }

    fn build_fact(target: &Arc<Target>, family: Family, uuid: &str, is_simulated: bool) -> Fact {
        Fact {
            target: Arc::clone(target),
            gpu: (!uuid.is_empty()).then_some(0),
            uuid: uuid.into(),
            family,
            is_part: false,
            id: "",
            value: 1.0,
            more: FactDetail::Model("x".into(), is_simulated),
        }
    }

    fn list_names(facts: &[Fact]) -> Vec<String> {
        Nodes::new(facts.iter().map(|fact| (true, fact))).names
    }

    #[test]
    fn node_names_include_ports_if_hosts_repeat() {
        let [a, b, c] = [("n10", 1), ("n9", 2), ("n9", 1)]
            .map(|(host, port)| build_target("", host, Some(port)));
        let own = |target, uuid| build_fact(target, Family::Own, uuid, false);
        assert_eq!(
            list_names(&[own(&a, "A"), own(&b, "B"), own(&c, "C")]),
            ["n9:1", "n9:2", "n10"]
        );
        // Targets on two ports, or with a name and an IP address, belong to one node if they export
        // the same GPUs.
        assert_eq!(
            list_names(&[own(&a, "A"), own(&b, "B"), own(&c, "B")]),
            ["n9", "n10"]
        );
        assert_eq!(list_names(&[own(&a, "A"), own(&b, "A")]), ["n10"]);
        let moved = [own(&a, "A"), own(&b, "A")];
        assert_eq!(
            Nodes::new([(false, &moved[0]), (true, &moved[1])].into_iter()).names,
            ["n9"]
        );
        // Machines with the same scenario simulate the same GPUs.
        let simulated = |target| build_fact(target, Family::Own, "A", true);
        assert_eq!(
            list_names(&[simulated(&a), simulated(&b), simulated(&c)]).len(),
            3
        );
    }

    #[test]
    fn dcgm_exporter_and_gpumon_share_one_node() {
        let own = build_target("", "10.0.0.1", Some(9124));
        let by_name = build_target("", "node1", None);
        let facts = [
            build_fact(&own, Family::Own, "A", false),
            build_fact(&by_name, Family::Old, "A", false),
        ];
        let nodes = Nodes::new(facts.iter().map(|fact| (true, fact)));
        assert_eq!(nodes.names, ["10.0.0.1"]);
        let scraped = Target {
            host: "10.0.0.1".into(),
            port: Some(9400),
            ..(*by_name).clone()
        };
        assert_eq!(
            nodes.find_node_of_target(&scraped),
            Some(0),
            "its own state is the node's, too"
        );
        let other = build_fact(&by_name, Family::Old, "B", false);
        assert_eq!(
            list_names(&[facts[0].clone(), other]),
            ["10.0.0.1", "node1"]
        );
    }

    #[test]
    fn duplicate_host_names_get_cluster_suffix() {
        let [a, b] = ["a", "b"].map(|cluster| {
            build_fact(
                &build_target(cluster, "n", Some(1)),
                Family::Own,
                cluster,
                false,
            )
        });
        assert_eq!(list_names(&[a.clone(), b]), ["n@a", "n@b"]);
        assert_eq!(list_names(&[a]), ["n"]);
    }
}
