//! The matrix of the connections between each two devices.

use std::cmp;

use gpumon_probe::vendor::nvml::query::{Query, Subject};

use super::{Topology, level, sysfs::Device};

/// The field IDs `NVML_FI_DEV_NVLINK_LINK_COUNT`, `NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT` (the
/// number of links to a switch) and `NVML_FI_DEV_NVLINK_GET_STATE` (whether a link is up).
const LINKS: u32 = 91;
const SWITCH_LINKS: u32 = 147;
const STATE: u32 = 165;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Matrix {
    /// Shows the NVLink connection if there is one, otherwise the PCIe path.
    Links,
    /// Shows only the PCIe paths.
    Pci,
    /// Shows the paths to `NVMe` disks.
    Disks,
}

/// A network card or a disk: its label in the matrix, its name in the kernel, and its position on
/// the PCIe bus.
struct Other {
    label: String,
    name: String,
    device: Option<Device>,
}

struct Gpu {
    index: u32,
    bus_id: Option<String>,
    device: Option<Device>,
    /// The links of the GPU, and the bus ID at the other end of each link.
    remotes: Vec<(u32, String)>,
}

/// Returns the matrix and the legend below it.
pub(super) fn table(topology: &Topology<'_>, gpus: &[u32], matrix: Matrix) -> String {
    let gpus: Vec<Gpu> = gpus
        .iter()
        .map(|gpu| describe(topology, *gpu, matrix))
        .collect();
    let (kind, found) = match matrix {
        Matrix::Disks => ("NVMe", topology.sysfs.disks()),
        Matrix::Links | Matrix::Pci => ("NIC", topology.sysfs.network_cards()),
    };
    let others: Vec<Other> = found
        .into_iter()
        .enumerate()
        .map(|(number, (name, device))| Other {
            label: format!("{kind}{number}"),
            name,
            device,
        })
        .collect();
    let rows = if matrix == Matrix::Disks {
        disks(&gpus, &others)
    } else {
        square(topology, &gpus, &others, matrix)
    };
    let links = if matrix == Matrix::Links {
        LINKS_LEGEND
    } else {
        ""
    };
    let names = if others.is_empty() {
        String::new()
    } else {
        let names: Vec<String> = others
            .iter()
            .map(|other| format!("  {}: {}\n", other.label, other.name))
            .collect();
        format!("\n{kind} Legend:\n\n{}\n", names.concat())
    };
    format!("{rows}{LEGEND}{links}{names}")
}

fn describe(topology: &Topology<'_>, index: u32, matrix: Matrix) -> Gpu {
    let text = |query| {
        let answer = topology.driver.about(Subject::gpu(index), query).ok()?;
        answer.text().map(str::to_owned)
    };
    let bus_id = text(Query::BusId);
    let device = bus_id
        .as_ref()
        .and_then(|bus_id| topology.sysfs.device(bus_id));
    let links = if matrix == Matrix::Links {
        let links = topology.ask_number(index, Query::Field(LINKS, 0));
        links.unwrap_or(0) as u32
    } else {
        0
    };
    let remotes = (0..links)
        .filter_map(|link| Some((link, text(Query::NvLinkRemoteBusId(link))?)))
        .collect();
    Gpu {
        index,
        bus_id,
        device,
        remotes,
    }
}

/// Returns the matrix between all GPUs and network cards.
fn square(topology: &Topology<'_>, gpus: &[Gpu], others: &[Other], matrix: Matrix) -> String {
    let labels = gpus
        .iter()
        .map(Gpu::label)
        .chain(others.iter().map(|other| other.label.clone()));
    let heading = labels.chain(["CPU Affinity", "NUMA Affinity", "GPU NUMA ID"].map(str::to_owned));
    let mut lines = vec![format!("\t\u{1b}[4m{}\u{1b}[0m\n", joined(heading))];
    for gpu in gpus {
        let near = gpus
            .iter()
            .map(|another| between(topology, gpu, another, matrix));
        let ways = others
            .iter()
            .map(|other| way(gpu.device.as_ref(), other.device.as_ref()));
        let place = [
            topology.cpus(gpu.index),
            topology.nodes_of_memory(gpu.index),
            String::new(),
        ];
        let cells = [gpu.label()]
            .into_iter()
            .chain(near)
            .chain(ways)
            .chain(place);
        lines.push(format!(
            "{}\n",
            joined(cells.chain([topology.own_node(gpu.index)]))
        ));
    }
    for (row, other) in others.iter().enumerate() {
        let near = gpus
            .iter()
            .map(|gpu| way(other.device.as_ref(), gpu.device.as_ref()));
        let ways = others.iter().enumerate().map(|(column, another)| {
            if row == column {
                SELF.to_owned()
            } else {
                way(other.device.as_ref(), another.device.as_ref())
            }
        });
        let cells = [other.label.clone()].into_iter().chain(near).chain(ways);
        // Network cards have no affinities, so these columns stay empty.
        lines.push(format!("{}\t\t\t\t\n", joined(cells)));
    }
    lines.concat()
}

/// Returns the matrix with a row for each GPU and a column for each disk.
fn disks(gpus: &[Gpu], disks: &[Other]) -> String {
    let mut lines = vec![format!(
        "\t\u{1b}[4m{}\u{1b}[0m\n",
        joined(disks.iter().map(|disk| disk.label.clone()))
    )];
    for gpu in gpus {
        let ways = disks
            .iter()
            .map(|disk| way(gpu.device.as_ref(), disk.device.as_ref()));
        lines.push(format!(
            "{}\t\n",
            joined([gpu.label()].into_iter().chain(ways))
        ));
    }
    lines.concat()
}

impl Gpu {
    fn label(&self) -> String {
        format!("GPU{}", self.index)
    }
}

fn joined(cells: impl Iterator<Item = String>) -> String {
    cells.collect::<Vec<_>>().join("\t")
}

fn between(topology: &Topology<'_>, gpu: &Gpu, other: &Gpu, matrix: Matrix) -> String {
    if gpu.index == other.index {
        return SELF.to_owned();
    }
    if matrix == Matrix::Links {
        let links = links(topology, gpu, other);
        if links > 0 {
            return format!("NV{links}");
        }
    }
    topology
        .path(gpu.index, other.index)
        .map_or("N/A", level::short)
        .to_owned()
}

/// Returns the number of active links between two GPUs: direct links, or links through the switches
/// that both GPUs are connected to. For switches, the smaller of the two GPUs' numbers of links
/// counts. As in nvidia-smi 580, NVML's number of switch links is used, which does not include
/// links that are down.
fn links(topology: &Topology<'_>, gpu: &Gpu, other: &Gpu) -> i128 {
    let leads_there = |remote: &str| {
        other
            .bus_id
            .as_ref()
            .is_some_and(|bus_id| remote.eq_ignore_ascii_case(bus_id))
    };
    let straight: Vec<u32> = gpu
        .remotes
        .iter()
        .filter(|(_, remote)| leads_there(remote))
        .map(|(link, _)| *link)
        .collect();
    if !straight.is_empty() || gpu.remotes.is_empty() {
        let is_up =
            |link: &&u32| topology.ask_number(gpu.index, Query::Field(STATE, **link)) == Some(1);
        return straight.iter().filter(is_up).count() as i128;
    }
    let switched = |gpu: &Gpu| {
        let links = topology.ask_number(gpu.index, Query::Field(SWITCH_LINKS, 0));
        links.unwrap_or(0)
    };
    cmp::min(switched(gpu), switched(other))
}

fn way(one: Option<&Device>, other: Option<&Device>) -> String {
    one.zip(other)
        .map_or("N/A", |(one, other)| level::short(one.to(other)))
        .to_owned()
}

const SELF: &str = " X ";

const LINKS_LEGEND: &str = "  NV#  = Connection traversing a bonded set of # NVLinks\n";

const LEGEND: &str = "
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
";
