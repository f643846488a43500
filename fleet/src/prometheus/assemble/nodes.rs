//! The grouping of targets into nodes, and the names of nodes.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use super::super::{facts::Fact, facts::More, target::Target};
use crate::natural::compare_names;

/// The nodes in order of their names.
#[derive(Debug, Default)]
pub(in crate::prometheus) struct Nodes {
    pub(super) names: Vec<String>,
    /// The targets of each node, the one that names it first. The list is empty if the node is
    /// gone.
    pub(super) targets: Vec<Vec<Arc<Target>>>,
    by_target: HashMap<Arc<Target>, usize>,
    by_instance: HashMap<(Arc<str>, Arc<str>), usize>,
    by_host: HashMap<(Arc<str>, Arc<str>), Vec<usize>>,
}

/// The facts about a target.
#[derive(Default)]
struct Known {
    gpus: BTreeMap<u32, Arc<str>>,
    is_own: bool,
    is_now: bool,
    is_simulated: bool,
}

impl Known {
    /// Returns a sort key. The target that names a node comes first.
    fn rank(&self) -> [bool; 3] {
        [!self.is_own, self.gpus.is_empty(), !self.is_now]
    }
}

impl Nodes {
    /// Groups targets into nodes. Each fact comes with a flag for whether it is current.
    pub(super) fn new<'f>(facts: impl Iterator<Item = (bool, &'f Fact)>) -> Self {
        let mut known: HashMap<Arc<Target>, Known> = HashMap::new();
        for (is_now, fact) in facts {
            // This check avoids cloning the target of each fact.
            if !known.contains_key(&fact.target) {
                known.insert(Arc::clone(&fact.target), Known::default());
            }
            let Some(target) = known.get_mut(&fact.target) else {
                continue;
            };
            target.is_now |= is_now;
            target.is_own |= !fact.family.is_dcgm();
            target.is_simulated |= matches!(fact.more, More::Model(_, true));
            if let Some(gpu) = fact.gpu.filter(|_| !fact.uuid.is_empty() && !fact.is_part) {
                target
                    .gpus
                    .entry(gpu)
                    .or_insert_with(|| Arc::clone(&fact.uuid));
            }
        }
        let mut known: Vec<_> = known.into_iter().collect();
        // Targets of gpumon name their nodes. If a node has several names, a current one is used.
        known.sort_by(|(a, of_a), (b, of_b)| of_a.rank().cmp(&of_b.rank()).then_with(|| a.cmp(b)));
        let groups = grouped(known);
        let mut named: Vec<_> = names(&groups).into_iter().zip(groups).collect();
        named.sort_by(|(a, _), (b, _)| compare_names(a, b));
        let mut nodes = Self::default();
        for (name, targets) in named {
            nodes.add(name, targets);
        }
        nodes
    }

    fn add(&mut self, name: String, targets: Vec<Arc<Target>>) {
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

    /// Returns the targets of the node with this name, or `None` if the fleet has no such node.
    pub(in crate::prometheus) fn targets_of(&self, name: &str) -> Option<&[Arc<Target>]> {
        let at = self.names.iter().position(|known| known == name)?;
        let targets = self.targets[at].as_slice();
        (!targets.is_empty()).then_some(targets)
    }

    /// Returns the name of the node of this target.
    pub(in crate::prometheus) fn name_of<'a>(&'a self, target: &'a Target) -> &'a str {
        let node = self.of(target).map(|at| self.names[at].as_str());
        node.unwrap_or(&target.host)
    }

    /// Returns the position of the node to which this target belongs.
    pub(super) fn of(&self, target: &Target) -> Option<usize> {
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
type Group = (Vec<Arc<Target>>, BTreeMap<u32, Arc<str>>);

/// Groups targets that belong to the same node.
fn grouped(known: Vec<(Arc<Target>, Known)>) -> Vec<Vec<Arc<Target>>> {
    let mut groups: Vec<Group> = Vec::new();
    let mut by_uuid: HashMap<(u32, Arc<str>), usize> = HashMap::new();
    let mut by_host: HashMap<(Arc<str>, Arc<str>), Vec<usize>> = HashMap::new();
    for (target, of) in known {
        let host = (Arc::clone(&target.cluster), Arc::clone(&target.host));
        let mut uuids = of.gpus.iter().map(|(gpu, uuid)| (*gpu, Arc::clone(uuid)));
        // Targets with the same GPU are one node with two names or ports. Simulated GPUs are
        // excepted, because those of many machines can be the same.
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

/// Returns the names of nodes: the host, with the port if the host has several nodes, and with the
/// cluster if several clusters have a host of this name.
fn names(groups: &[Vec<Arc<Target>>]) -> Vec<String> {
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
            name = if name.contains(':') {
                format!("[{name}]:{port}")
            } else {
                format!("{name}:{port}")
            };
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

    fn target(cluster: &str, host: &str, port: Option<u16>) -> Arc<Target> {
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

    fn fact(target: &Arc<Target>, family: Family, uuid: &str, is_simulated: bool) -> Fact {
        Fact {
            target: Arc::clone(target),
            gpu: (!uuid.is_empty()).then_some(0),
            uuid: uuid.into(),
            family,
            is_part: false,
            id: "",
            value: 1.0,
            more: More::Model("x".into(), is_simulated),
        }
    }

    fn names_of(facts: &[Fact]) -> Vec<String> {
        Nodes::new(facts.iter().map(|fact| (true, fact))).names
    }

    #[test]
    fn a_host_of_one_node_gives_its_name_and_one_of_several_its_port_too() {
        let [a, b, c] =
            [("n10", 1), ("n9", 2), ("n9", 1)].map(|(host, port)| target("", host, Some(port)));
        let own = |target, uuid| fact(target, Family::Own, uuid, false);
        assert_eq!(
            names_of(&[own(&a, "A"), own(&b, "B"), own(&c, "C")]),
            ["n9:1", "n9:2", "n10"]
        );
        // If the same GPUs are at two ports, or at a name and an IP address, they belong to one
        // node.
        assert_eq!(
            names_of(&[own(&a, "A"), own(&b, "B"), own(&c, "B")]),
            ["n9", "n10"]
        );
        assert_eq!(names_of(&[own(&a, "A"), own(&b, "A")]), ["n10"]);
        let moved = [own(&a, "A"), own(&b, "A")];
        assert_eq!(
            Nodes::new([(false, &moved[0]), (true, &moved[1])].into_iter()).names,
            ["n9"]
        );
        // Simulated GPUs are the same on all machines with the same scenario.
        let simulated = |target| fact(target, Family::Own, "A", true);
        assert_eq!(
            names_of(&[simulated(&a), simulated(&b), simulated(&c)]).len(),
            3
        );
    }

    #[test]
    fn dcgm_exporter_beside_gpumon_is_the_same_node() {
        let own = target("", "10.0.0.1", Some(9124));
        let by_name = target("", "node1", None);
        let facts = [
            fact(&own, Family::Own, "A", false),
            fact(&by_name, Family::Old, "A", false),
        ];
        let nodes = Nodes::new(facts.iter().map(|fact| (true, fact)));
        assert_eq!(nodes.names, ["10.0.0.1"]);
        let scraped = Target {
            host: "10.0.0.1".into(),
            port: Some(9400),
            ..(*by_name).clone()
        };
        assert_eq!(
            nodes.of(&scraped),
            Some(0),
            "its own state is the node's, too"
        );
        let other = fact(&by_name, Family::Old, "B", false);
        assert_eq!(names_of(&[facts[0].clone(), other]), ["10.0.0.1", "node1"]);
    }

    #[test]
    fn clusters_tell_hosts_of_one_name_apart() {
        let [a, b] = ["a", "b"]
            .map(|cluster| fact(&target(cluster, "n", Some(1)), Family::Own, cluster, false));
        assert_eq!(names_of(&[a.clone(), b]), ["n@a", "n@b"]);
        assert_eq!(names_of(&[a]), ["n"]);
    }
}
