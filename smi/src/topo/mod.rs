//! The `topo` subcommand, which shows how the GPUs, CPUs and network cards of a machine are
//! connected.

mod level;
mod matrix;
mod near;
mod p2p;
mod ranges;
mod sysfs;

use std::io::Write;

use gpumon_probe::{
    model::PciPath,
    vendor::nvml::query::{Query, QueryBackend, Subject, SystemQuery},
};

use self::{matrix::Matrix, sysfs::Sysfs};
use super::{Refusal, form::Form, select::select, subcommand::Stop, switches::Values};

pub(super) static FORM: Form = Form {
    name: "topo",
    usage: include_str!("help.txt"),
    takes: &["-i", "-c"],
    values: &[
        ("-n", Values::One(level::TYPED)),
        ("-p2p", Values::One(p2p::CAPABILITIES)),
    ],
    ..Form::EMPTY
};

pub(super) fn run(
    arguments: &[String],
    driver: &dyn QueryBackend,
    output: &mut dyn Write,
) -> Result<u8, Stop> {
    let switches = FORM.parse(arguments)?;
    if switches.is_empty() {
        return Err(FORM.explain());
    }
    let cpu = switches.number("-c")?;
    let nearest = switches.number("-n")?;
    let selected = switches
        .value("-i")
        .map(|text| select(driver, Some(text)))
        .transpose()?;
    let selected = selected.as_deref();
    let sysfs = Sysfs::default();
    let topology = Topology {
        driver,
        sysfs: &sysfs,
    };

    if let Some(letter) = switches.value("-p2p") {
        output.write_all(p2p::table(driver, &select(driver, None)?, letter)?.as_bytes())?;
    }
    if let Some(cpu) = cpu {
        output.write_all(near::gpus_of_cpu(driver, cpu).as_bytes())?;
    }
    let single = |what: &str| match selected {
        Some([gpu]) => Ok(*gpu),
        _ => Err(Refusal::new(
            2,
            format!(
                "{what} must be used in conjunction with the -i argument which must be a single \
                 identifier.\n\n"
            ),
        )),
    };
    if let Some(level) = nearest {
        let gpu = single("Nearest GPUs argument")?;
        output.write_all(near::gpus_of_gpu(driver, gpu, level)?.as_bytes())?;
    }
    if switches.has("-p") {
        output.write_all(near::path(&topology, selected)?.as_bytes())?;
    }
    if switches.has("-C") {
        let nodes = topology.nodes_of_cpus(single("NUMA ID of nearest CPU")?);
        writeln!(
            output,
            "NUMA IDs of closest CPU: {}",
            or_not_applicable(nodes)
        )?;
    }
    if switches.has("-M") {
        let nodes = topology.nodes_of_memory(single("NUMA ID of nearest memory")?);
        writeln!(
            output,
            "NUMA IDs of closest memory: {}",
            or_not_applicable(nodes)
        )?;
    }
    if switches.has("-gnid") {
        let gpu = single("GPU NUMA ID command")?;
        writeln!(output, "{}", topology.own_node(gpu))?;
    }
    if selected.is_some()
        && nearest.is_none()
        && switches.first_of(&["-p", "-C", "-M", "-gnid"]).is_none()
    {
        let text = "The -i command line argument must be used in conjunction with -n or -p.\n\n";
        return Err(Refusal::new(255, text).into());
    }
    for (switch, matrix) in [
        ("-m", Matrix::Links),
        ("-mp", Matrix::Pci),
        ("-nvme", Matrix::Disks),
    ] {
        if switches.has(switch) {
            let gpus = select(driver, None)?;
            output.write_all(matrix::table(&topology, &gpus, matrix).as_bytes())?;
        }
    }
    Ok(0)
}

/// The sources of the topology: the driver and the kernel.
struct Topology<'a> {
    driver: &'a dyn QueryBackend,
    sysfs: &'a Sysfs,
}

impl Topology<'_> {
    /// Returns the CPUs near a GPU as ranges; empty if they are unknown.
    fn cpus(&self, gpu: u32) -> String {
        self.words(gpu, Query::CpuAffinity)
            .map_or_else(String::new, |words| ranges::of_words(&words))
    }

    fn nodes_of_memory(&self, gpu: u32) -> String {
        self.words(gpu, Query::MemoryAffinity)
            .map_or_else(String::new, |words| ranges::of_words(&words))
    }

    fn nodes_of_cpus(&self, gpu: u32) -> String {
        let Some(words) = self.words(gpu, Query::CpuAffinity) else {
            return String::new();
        };
        let near = ranges::numbers(&words);
        let nodes: Vec<u32> = self
            .sysfs
            .nodes()
            .into_iter()
            .filter(|(_, cpus)| cpus.iter().any(|cpu| near.contains(cpu)))
            .map(|(node, _)| node)
            .collect();
        ranges::of_numbers(&nodes)
    }

    fn own_node(&self, gpu: u32) -> String {
        self.ask_number(gpu, Query::NumaNode)
            .map_or_else(|| "N/A".to_owned(), |node| node.to_string())
    }

    fn ask_number(&self, gpu: u32, query: Query) -> Option<i128> {
        self.driver.about(Subject::gpu(gpu), query).ok()?.at(0)
    }

    /// Returns the PCIe path between two GPUs; `None` if it is unknown.
    fn path(&self, gpu: u32, other: u32) -> Option<PciPath> {
        PciPath::from_level(self.ask_number(gpu, Query::CommonAncestor(other))?)
    }

    fn words(&self, gpu: u32, query: Query) -> Option<Vec<u64>> {
        let answer = self.driver.about(Subject::gpu(gpu), query).ok()?;
        Some(answer.numbers().iter().map(|word| *word as u64).collect())
    }
}

fn or_not_applicable(text: String) -> String {
    if text.is_empty() {
        "N/A".to_owned()
    } else {
        text
    }
}

/// Formats indices as a comma-separated list.
fn listed(numbers: &[i128]) -> String {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

fn near_cpu(driver: &dyn QueryBackend, cpu: i64) -> Vec<i128> {
    let answer = u32::try_from(cpu)
        .ok()
        .and_then(|cpu| driver.system(SystemQuery::GpusNearCpu(cpu)).ok());
    answer.map_or_else(Vec::new, |answer| answer.numbers().to_vec())
}

#[cfg(test)]
mod tests;
