//! The matrices of connections between devices, and the tables of capabilities between GPUs.

use std::cmp;

use gpumon_probe::{
    model::PciPath,
    vendor::nvml::query::{Query, QueryBackend},
};

use super::{Topology, sysfs::Device};
use crate::{
    Refusal,
    gpu_list::{read_number, read_text},
};

/// The ID of the field `NVML_FI_DEV_NVLINK_LINK_COUNT`. `SWITCH_LINK_COUNT_FIELD` is the ID of
/// `NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT` (the number of links to a switch), and
/// `LINK_STATE_FIELD` that of `NVML_FI_DEV_NVLINK_GET_STATE` (whether a link is up).
const LINK_COUNT_FIELD: u32 = 91;
const SWITCH_LINK_COUNT_FIELD: u32 = 147;
const LINK_STATE_FIELD: u32 = 165;

const SELF_CELL: &str = " X ";

const LINKS_LEGEND: &str = "  NV#  = Connection traversing a bonded set of # NVLinks\n";

const MATRIX_LEGEND: &str = "
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Matrix {
    /// A matrix that shows NVLink connections, or the PCIe path if there is no NVLink connection.
    Links,
    /// A matrix that shows only PCIe paths.
    Pci,
    /// A matrix that shows the paths to `NVMe` disks.
    Disks,
}

/// A network card or a disk: its label in the matrix, its kernel name, and its position on the PCIe
/// bus.
struct OtherDevice {
    label: String,
    name: String,
    device: Option<Device>,
}

struct Gpu {
    index: u32,
    bus_id: Option<String>,
    device: Option<Device>,
    /// The GPU's links, each with the bus ID of the device at the other end.
    remotes: Vec<(u32, String)>,
}

/// Returns the matrix, followed by its legend.
pub(super) fn render_matrix(topology: &Topology<'_>, gpus: &[u32], matrix: Matrix) -> String {
    let gpus: Vec<Gpu> = gpus
        .iter()
        .map(|gpu| read_gpu(topology, *gpu, matrix))
        .collect();
    let (kind, found) = match matrix {
        Matrix::Disks => ("NVMe", topology.sysfs.list_disks()),
        Matrix::Links | Matrix::Pci => ("NIC", topology.sysfs.list_network_cards()),
    };
    let others: Vec<OtherDevice> = found
        .into_iter()
        .enumerate()
        .map(|(number, (name, device))| OtherDevice {
            label: format!("{kind}{number}"),
            name,
            device,
        })
        .collect();
    let rows = if matrix == Matrix::Disks {
        render_disks(&gpus, &others)
    } else {
        render_device_matrix(topology, &gpus, &others, matrix)
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
    format!("{rows}{MATRIX_LEGEND}{links}{names}")
}

fn read_gpu(topology: &Topology<'_>, index: u32, matrix: Matrix) -> Gpu {
    let text = |query| read_text(topology.driver, index, query);
    let bus_id = text(Query::BusId);
    let device = bus_id
        .as_ref()
        .and_then(|bus_id| topology.sysfs.find_device(bus_id));
    let links = if matrix == Matrix::Links {
        let links = topology.read_number(index, Query::Field(LINK_COUNT_FIELD, 0));
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

/// Returns the matrix of all GPUs and network cards.
fn render_device_matrix(
    topology: &Topology<'_>,
    gpus: &[Gpu],
    others: &[OtherDevice],
    matrix: Matrix,
) -> String {
    let labels = gpus
        .iter()
        .map(Gpu::label)
        .chain(others.iter().map(|other| other.label.clone()));
    let heading = labels.chain(["CPU Affinity", "NUMA Affinity", "GPU NUMA ID"].map(str::to_owned));
    let mut lines = vec![format!("\t\u{1b}[4m{}\u{1b}[0m\n", join_cells(heading))];
    for gpu in gpus {
        let near = gpus
            .iter()
            .map(|another| format_connection(topology, gpu, another, matrix));
        let paths = others
            .iter()
            .map(|other| format_path(gpu.device.as_ref(), other.device.as_ref()));
        let place = [
            topology.format_cpus(gpu.index),
            topology.format_memory_nodes(gpu.index),
            String::new(),
        ];
        let cells = [gpu.label()]
            .into_iter()
            .chain(near)
            .chain(paths)
            .chain(place);
        lines.push(format!(
            "{}\n",
            join_cells(cells.chain([topology.format_memory_node_of_gpu(gpu.index)]))
        ));
    }
    for (row, other) in others.iter().enumerate() {
        let near = gpus
            .iter()
            .map(|gpu| format_path(other.device.as_ref(), gpu.device.as_ref()));
        let paths = others.iter().enumerate().map(|(column, another)| {
            if row == column {
                SELF_CELL.to_owned()
            } else {
                format_path(other.device.as_ref(), another.device.as_ref())
            }
        });
        let cells = [other.label.clone()].into_iter().chain(near).chain(paths);
        // Network cards have no affinities, so the affinity columns are empty.
        lines.push(format!("{}\t\t\t\t\n", join_cells(cells)));
    }
    lines.concat()
}

/// Returns the matrix with a row for each GPU and a column for each disk.
fn render_disks(gpus: &[Gpu], disks: &[OtherDevice]) -> String {
    let mut lines = vec![format!(
        "\t\u{1b}[4m{}\u{1b}[0m\n",
        join_cells(disks.iter().map(|disk| disk.label.clone()))
    )];
    for gpu in gpus {
        let paths = disks
            .iter()
            .map(|disk| format_path(gpu.device.as_ref(), disk.device.as_ref()));
        lines.push(format!(
            "{}\t\n",
            join_cells([gpu.label()].into_iter().chain(paths))
        ));
    }
    lines.concat()
}

impl Gpu {
    fn label(&self) -> String {
        format!("GPU{}", self.index)
    }
}

fn join_cells(cells: impl Iterator<Item = String>) -> String {
    cells.collect::<Vec<_>>().join("\t")
}

fn format_connection(topology: &Topology<'_>, gpu: &Gpu, other: &Gpu, matrix: Matrix) -> String {
    if gpu.index == other.index {
        return SELF_CELL.to_owned();
    }
    if matrix == Matrix::Links {
        let links = count_links(topology, gpu, other);
        if links > 0 {
            return format!("NV{links}");
        }
    }
    topology
        .find_path(gpu.index, other.index)
        .map_or("N/A", abbreviate_path)
        .to_owned()
}

/// Returns the number of active links between two GPUs. If there are no direct links, but both GPUs
/// have links to switches, returns the number of switch links of the GPU that has fewer. As in
/// nvidia-smi 580, this number comes from NVML and does not include links that are down.
fn count_links(topology: &Topology<'_>, gpu: &Gpu, other: &Gpu) -> i128 {
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
        let is_up = |link: &&u32| {
            topology.read_number(gpu.index, Query::Field(LINK_STATE_FIELD, **link)) == Some(1)
        };
        return straight.iter().filter(is_up).count() as i128;
    }
    let switched = |gpu: &Gpu| {
        let links = topology.read_number(gpu.index, Query::Field(SWITCH_LINK_COUNT_FIELD, 0));
        links.unwrap_or(0)
    };
    cmp::min(switched(gpu), switched(other))
}

fn format_path(one: Option<&Device>, other: Option<&Device>) -> String {
    one.zip(other)
        .map_or("N/A", |(one, other)| abbreviate_path(one.path_to(other)))
        .to_owned()
}

// The PCIe path between two devices, in nvidia-smi's words.

/// The levels that `topo -n` accepts.
pub(super) const PATH_LEVELS: &[&str] = &["0", "1", "2", "3", "4", "5"];

/// Returns the path for a level of `-n` (0 to 5), and NVML's number for that level.
pub(super) fn find_path_of_level(number: i64) -> Option<(PciPath, u32)> {
    let number = u32::try_from(number).ok()?.checked_mul(10)?;
    PciPath::from_level(i128::from(number)).map(|path| (path, number))
}

pub(super) fn abbreviate_path(path: PciPath) -> &'static str {
    match path {
        PciPath::Internal | PciPath::Single => "PIX",
        PciPath::Multiple => "PXB",
        PciPath::HostBridge => "PHB",
        PciPath::Node => "NODE",
        PciPath::System => "SYS",
    }
}

/// Describes the longest path that a level allows between two GPUs.
pub(super) fn describe_longest_path(path: PciPath) -> String {
    match path {
        PciPath::Multiple => "by way of potentially multiple PCIe switches".to_owned(),
        PciPath::HostBridge => "by the same PCIe host bridge".to_owned(),
        PciPath::Node => "by way of an on-CPU interconnect between PCIe host bridges".to_owned(),
        path => format!("by way of {}", describe_path(path)),
    }
}

pub(super) fn describe_path(path: PciPath) -> &'static str {
    match path {
        PciPath::Internal => "an single on-board PCIe switch",
        PciPath::Single => "a single PCIe switch",
        PciPath::Multiple => "multiple PCIe switches",
        PciPath::HostBridge => "a PCIe host bridge",
        PciPath::Node => "an on-CPU interconnect link between PCIe host bridges",
        PciPath::System => "an SMP interconnect link between NUMA nodes",
    }
}

// The tables of peer-to-peer capabilities between GPUs.

/// The letters for the capabilities, in the order of `nvmlGpuP2PCapsIndex_t`.
pub(super) const P2P_CAPABILITIES: &[&str] = &["r", "w", "n", "a", "p"];

const P2P_LEGEND: &str = "
Legend:

  X    = Self
  OK   = Status Ok
  CNS  = Chipset not supported
  GNS  = GPU not supported
  TNS  = Topology not supported
  NS   = Not supported
  U    = Unknown
";

/// Returns the table for one capability: `r` read, `w` write, `n` NVLink, `a` atomics, `p` PCIe.
pub(super) fn render_p2p_table(
    driver: &dyn QueryBackend,
    gpus: &[u32],
    letter: &str,
) -> Result<String, Refusal> {
    let capability = P2P_CAPABILITIES
        .iter()
        .position(|known| *known == letter)
        .ok_or_else(|| {
            Refusal::new(
                2,
                "Invalid p2p capability index specified at the command-line\n",
            )
        })?;
    let names: Vec<String> = gpus.iter().map(|gpu| format!("GPU{gpu}\t")).collect();
    let rows = gpus.iter().map(|row| {
        let words: Vec<String> = gpus
            .iter()
            .map(|column| {
                if row == column {
                    "X"
                } else {
                    find_p2p_word(driver, *row, *column, capability as u32)
                }
            })
            .map(|word| format!("{word}\t"))
            .collect();
        format!(" GPU{row}\t{}\n", words.concat())
    });
    Ok(format!(
        " \t\u{1b}[4m{}\u{1b}[0m\n{}{P2P_LEGEND}",
        names.concat(),
        rows.collect::<Vec<_>>().concat()
    ))
}

/// Returns nvidia-smi's word for an `nvmlGpuP2PStatus_t`.
fn find_p2p_word(driver: &dyn QueryBackend, gpu: u32, other: u32, capability: u32) -> &'static str {
    match read_number(driver, gpu, Query::P2pStatus(other, capability)) {
        Some(0) => "OK",
        Some(1) => "CNS",
        Some(2) => "GNS",
        Some(3) => "TNS",
        Some(4 | 5) => "NS",
        _ => "U",
    }
}
