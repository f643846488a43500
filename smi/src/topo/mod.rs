//! The `topo` subcommand, which shows how a machine's GPUs, CPUs, and network cards are connected.

mod matrix;
mod sysfs;

use std::io::Write;

use gpumon_probe::{
    model::PciPath,
    vendor::nvml::query::{Query, QueryBackend, Subject, SystemQuery},
};

use self::{matrix::Matrix, sysfs::Sysfs};
use crate::{
    Refusal,
    gpu_list::{find_listed_gpus, read_number},
    subcommand::{AllowedValues, SubcommandError, SubcommandSyntax},
};

pub(super) static SYNTAX: SubcommandSyntax = SubcommandSyntax {
    name: "topo",
    usage: include_str!("help.txt"),
    takes: &["-i", "-c"],
    values: &[
        ("-n", AllowedValues::One(matrix::PATH_LEVELS)),
        ("-p2p", AllowedValues::One(matrix::P2P_CAPABILITIES)),
    ],
    ..SubcommandSyntax::EMPTY
};

pub(super) fn run(
    arguments: &[String],
    driver: &dyn QueryBackend,
    output: &mut dyn Write,
) -> Result<u8, SubcommandError> {
    let switches = SYNTAX.parse(arguments)?;
    if switches.is_empty() {
        return Err(SYNTAX.help_as_error());
    }
    let cpu = switches.parse_number("-c")?;
    let nearest = switches.parse_number("-n")?;
    let selected = switches
        .value("-i")
        .map(|text| find_listed_gpus(driver, Some(text)))
        .transpose()?;
    let selected = selected.as_deref();
    let sysfs = Sysfs::default();
    let topology = Topology {
        driver,
        sysfs: &sysfs,
    };

    if let Some(letter) = switches.value("-p2p") {
        output.write_all(
            matrix::render_p2p_table(driver, &find_listed_gpus(driver, None)?, letter)?.as_bytes(),
        )?;
    }
    if let Some(cpu) = cpu {
        output.write_all(describe_gpus_near_cpu(driver, cpu).as_bytes())?;
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
        output.write_all(describe_gpus_near_gpu(driver, gpu, level)?.as_bytes())?;
    }
    if switches.contains("-p") {
        output.write_all(describe_path_between_gpus(&topology, selected)?.as_bytes())?;
    }
    if switches.contains("-C") {
        let nodes = topology.format_cpu_nodes(single("NUMA ID of nearest CPU")?);
        writeln!(
            output,
            "NUMA IDs of closest CPU: {}",
            replace_empty_text(nodes)
        )?;
    }
    if switches.contains("-M") {
        let nodes = topology.format_memory_nodes(single("NUMA ID of nearest memory")?);
        writeln!(
            output,
            "NUMA IDs of closest memory: {}",
            replace_empty_text(nodes)
        )?;
    }
    if switches.contains("-gnid") {
        let gpu = single("GPU NUMA ID command")?;
        writeln!(output, "{}", topology.format_memory_node_of_gpu(gpu))?;
    }
    if selected.is_some()
        && nearest.is_none()
        && switches
            .find_first_typed(&["-p", "-C", "-M", "-gnid"])
            .is_none()
    {
        let text = "The -i command line argument must be used in conjunction with -n or -p.\n\n";
        return Err(Refusal::new(255, text).into());
    }
    for (switch, matrix) in [
        ("-m", Matrix::Links),
        ("-mp", Matrix::Pci),
        ("-nvme", Matrix::Disks),
    ] {
        if switches.contains(switch) {
            let gpus = find_listed_gpus(driver, None)?;
            output.write_all(matrix::render_matrix(&topology, &gpus, matrix).as_bytes())?;
        }
    }
    Ok(0)
}

/// The sources of topology data: the driver and the kernel.
struct Topology<'a> {
    driver: &'a dyn QueryBackend,
    sysfs: &'a Sysfs,
}

impl Topology<'_> {
    /// Returns the CPUs near a GPU as ranges, or an empty string if they are unknown.
    fn format_cpus(&self, gpu: u32) -> String {
        self.read_bitmap_words(gpu, Query::CpuAffinity)
            .map_or_else(String::new, |words| sysfs::format_bit_ranges(&words))
    }

    fn format_memory_nodes(&self, gpu: u32) -> String {
        self.read_bitmap_words(gpu, Query::MemoryAffinity)
            .map_or_else(String::new, |words| sysfs::format_bit_ranges(&words))
    }

    fn format_cpu_nodes(&self, gpu: u32) -> String {
        let Some(words) = self.read_bitmap_words(gpu, Query::CpuAffinity) else {
            return String::new();
        };
        let near = sysfs::list_set_bits(&words);
        let nodes: Vec<u32> = self
            .sysfs
            .list_numa_nodes()
            .into_iter()
            .filter(|(_, cpus)| cpus.iter().any(|cpu| near.contains(cpu)))
            .map(|(node, _)| node)
            .collect();
        sysfs::format_ranges(&nodes)
    }

    fn format_memory_node_of_gpu(&self, gpu: u32) -> String {
        self.read_number(gpu, Query::NumaNode)
            .map_or_else(|| "N/A".to_owned(), |node| node.to_string())
    }

    fn read_number(&self, gpu: u32, query: Query) -> Option<i128> {
        read_number(self.driver, gpu, query)
    }

    /// Returns the PCIe path between two GPUs, or `None` if it is unknown.
    fn find_path(&self, gpu: u32, other: u32) -> Option<PciPath> {
        PciPath::from_level(self.read_number(gpu, Query::CommonAncestor(other))?)
    }

    fn read_bitmap_words(&self, gpu: u32, query: Query) -> Option<Vec<u64>> {
        let answer = self
            .driver
            .answer_query(Subject::from_gpu(gpu), query)
            .ok()?;
        Some(answer.numbers().iter().map(|word| *word as u64).collect())
    }
}

fn replace_empty_text(text: String) -> String {
    if text.is_empty() {
        "N/A".to_owned()
    } else {
        text
    }
}

/// Formats GPU indices as a comma-separated list.
fn format_gpu_list(numbers: &[i128]) -> String {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

fn find_gpus_near_cpu(driver: &dyn QueryBackend, cpu: i64) -> Vec<i128> {
    let answer = u32::try_from(cpu)
        .ok()
        .and_then(|cpu| driver.answer_system(SystemQuery::GpusNearCpu(cpu)).ok());
    answer.map_or_else(Vec::new, |answer| answer.numbers().to_vec())
}

// Sentences about devices that are close to each other.

fn describe_gpus_near_cpu(driver: &dyn QueryBackend, cpu: i64) -> String {
    let gpus = find_gpus_near_cpu(driver, cpu);
    if gpus.is_empty() {
        return format!("No GPUs were found to have an affinity with CPU {cpu}.\n\n");
    }
    format!(
        "The GPUs that have an affinity with CPU {cpu} are:\n{}\n\n",
        format_gpu_list(&gpus)
    )
}

/// Describes the GPUs that are close to `gpu`: those whose path to `gpu` does not exceed `level`.
fn describe_gpus_near_gpu(
    driver: &dyn QueryBackend,
    gpu: u32,
    level: i64,
) -> Result<String, Refusal> {
    let failed = || Refusal::new(255, "Failed to display the nearest GPUs\n\n");
    let (path, number) = matrix::find_path_of_level(level).ok_or_else(failed)?;
    let answer = driver
        .answer_query(Subject::from_gpu(gpu), Query::NearestGpus(number))
        .map_err(|_| failed())?;
    let between = matrix::describe_longest_path(path);
    if answer.numbers().is_empty() {
        return Ok(format!(
            "Device {gpu} is not connected to other devices {between}.\n\n"
        ));
    }
    Ok(format!(
        "Device {gpu} is connected {between} to device(s): {}\n\n",
        format_gpu_list(answer.numbers())
    ))
}

/// Describes the path between the two GPUs that are selected with `-i`.
fn describe_path_between_gpus(
    topology: &Topology<'_>,
    selected: Option<&[u32]>,
) -> Result<String, Refusal> {
    let Some([one, other]) = selected else {
        let text = "Path command line flag must be used in conjection with the -i argument which \
                    must be two GPU identifiers.\n\n";
        return Err(Refusal::new(2, text));
    };
    let path = topology
        .find_path(*one, *other)
        .ok_or_else(|| Refusal::new(255, "Failed to display the path between the GPUs\n\n"))?;
    Ok(format!(
        "Device {one} is connected to device {other} by way of {}.\n\n",
        matrix::describe_path(path)
    ))
}

#[cfg(test)]
mod tests;
