//! `gpumon info`: prints the properties and theoretical peak rates of this machine's GPUs and CPU.

use std::time::Duration;

use gpumon_probe::{
    model::{Absence, NvLink, Reading},
    owner::CommandLines,
    units::format_byte_size,
};
use gpumon_workload::{
    DriverUnavailable,
    info::{ClockSource, Cpu, CudaGpus, GpuInfo, Peak},
};
use serde::Serialize;

use crate::{
    exit::{Failure, Result},
    options::SourceArgs,
    snapshot::{self, DriverAnswer, DriverState},
    terminal::{
        line::{STRONG, paint},
        output::print_report,
        units::{format_count, format_three_digits},
    },
};

/// Print the properties and theoretical peak rates of GPUs and CPU
///
/// Properties come from the CUDA driver. Peak rates are computed from the number of
/// multiprocessors, the maximum clock and the data sheet of the architecture, without sparsity; for
/// an unknown architecture they are absent. Information about links comes from NVML.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct InfoArgs {
    /// Print the properties as JSON
    #[arg(long)]
    json: bool,
}

const NOTES: &str = "\
Examples:
  gpumon info
      Print GPUs, links and CPU.
  gpumon info --json | jq '.gpus[] | [.index, .uuid, .memory_bytes_per_second]'
      Print the peak memory bandwidth of every GPU.

Environment:
  GPUMON_LIBCUDA  path of the CUDA driver library, if the loader does not find libcuda.so.1
  CUDA_VISIBLE_DEVICES  GPUs visible to CUDA, in this order

Exit codes: 0 success, 2 invalid argument, 3 no GPU or no driver (only the CPU is printed)";

const NO_GPU_CODE: u8 = 3;

#[derive(Debug, Serialize)]
struct Machine {
    /// The newest CUDA version that the driver supports, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cuda: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    no_gpu: Option<String>,
    gpus: Vec<GpuWithLinks>,
    cpu: Cpu,
}

#[derive(Debug, Serialize)]
struct GpuWithLinks {
    #[serde(flatten)]
    info: GpuInfo,
    links: Links,
}

pub(crate) fn run(source: &SourceArgs, args: &InfoArgs) -> Result {
    source.source.check_scenario_file()?;
    let (cuda, gpus, error) = match read_gpus(source) {
        Ok((cuda, gpus)) => (Some(cuda), gpus, None),
        Err(error) => (None, Vec::new(), Some(error)),
    };
    let machine = Machine {
        cuda,
        no_gpu: error.as_ref().map(ToString::to_string),
        gpus,
        cpu: Cpu::read(),
    };
    print_report(args.json, || &machine, |_| format_machine(&machine))?;
    error.map_or(Ok(()), |error| Err(Failure::with_code(error, NO_GPU_CODE)))
}

fn read_gpus(source: &SourceArgs) -> Result<(String, Vec<GpuWithLinks>), DriverUnavailable> {
    let CudaGpus { cuda, gpus } = CudaGpus::read()?;
    let known = read_links(source);
    let gpus = gpus.into_iter().map(|info| GpuWithLinks {
        links: find_links(&known, &info.uuid),
        info,
    });
    Ok((cuda, gpus.collect()))
}

/// The maximum time to wait for NVML to open, which can hang if a GPU has failed.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Links {
    /// The highest PCIe generation that both the board and the slot support.
    pcie_generation: Reading<u32>,
    pcie_width: Reading<u32>,
    /// The number of NVLinks that are up.
    nvlinks: Reading<u32>,
    /// The total rate of all NVLinks in each direction, in bytes per second.
    nvlink_bytes_per_second: Reading<f64>,
}

/// Reads the links from NVML. If NVML fails or hangs, the links are unknown, and the other
/// properties are still printed.
fn read_links(source: &SourceArgs) -> DriverState {
    let is_enough = |answer: &DriverAnswer, _| answer.inventory.gpus.len() <= answer.details.len();
    snapshot::read_driver(source, CommandLines::Own, OPEN_TIMEOUT, is_enough)
}

/// Returns the links of the GPU with this UUID.
fn find_links(driver: &DriverState, uuid: &str) -> Links {
    let found = driver.answer().and_then(|answer| {
        let mut gpus = answer.inventory.gpus.iter();
        let gpu = gpus.find(|gpu| gpu.uuid.as_deref() == Some(uuid))?;
        Some((gpu, answer.details.get(&gpu.index)))
    });
    let (gpu, details) = (found.map(|found| found.0), found.and_then(|found| found.1));
    let up: Reading<Vec<NvLink>> =
        details.map_or_else(make_unknown_reading, |details| details.nvlinks.clone());
    let up = up.map(|mut links| {
        links.retain(|link| link.active.value() == Some(&true));
        links
    });
    Links {
        pcie_generation: gpu.map_or_else(make_unknown_reading, |gpu| {
            gpu.board.pcie_max_generation.clone()
        }),
        pcie_width: gpu.map_or_else(make_unknown_reading, |gpu| gpu.board.pcie_max_width.clone()),
        // `sum` is not used, because for an empty list it returns -0.
        nvlink_bytes_per_second: up.clone().map(|up| {
            up.iter()
                .filter_map(|link| link.bytes_per_second.value())
                .fold(0.0, |sum, rate| sum + rate)
        }),
        nvlinks: up.map(|up| up.len() as u32),
    }
}

fn make_unknown_reading<T>() -> Reading<T> {
    Reading::Absent(Absence::Unknown)
}

const UNKNOWN: &str = "unknown";
const LABEL_WIDTH: usize = 18;

/// Formats a title, followed by a line for each label and text.
fn format_section(title: &str, lines: &[(&str, String)]) -> String {
    let lines = lines
        .iter()
        .map(|(label, text)| format!("  {label:LABEL_WIDTH$}{text}\n"));
    format!("{}\n{}", paint(STRONG, title), lines.collect::<String>())
}

fn format_machine(machine: &Machine) -> String {
    let gpus = machine
        .gpus
        .iter()
        .map(|gpu| format_gpu(gpu, machine.cuda.as_deref().unwrap_or(UNKNOWN)));
    gpus.chain([format_cpu(&machine.cpu)])
        .collect::<Vec<_>>()
        .join("\n")
}

fn format_gpu(gpu: &GpuWithLinks, cuda: &str) -> String {
    let info = &gpu.info;
    let bytes =
        |reading: &Reading<u64>| format_reading(reading, |bytes| format_byte_size(*bytes as f64));
    let clock = format_reading(&info.max_clock_mhz, |mhz| format!("{mhz:.0} MHz"));
    let memory_clock = format_reading(&info.memory_clock_mhz, |mhz| format!("{mhz:.0} MHz"));
    let bandwidth = format_reading(&info.memory_bytes_per_second, |rate| {
        format!("{} TB/s", format_three_digits(rate / 1e12))
    });
    let ecc = format_reading(&info.ecc, |on| {
        if *on { "with ECC" } else { "without ECC" }.to_owned()
    });
    let peaks = format_reading(&info.peaks, |peaks| {
        let by_type: Vec<_> = peaks.by_type.iter().map(format_peak).collect();
        by_type.join(", ")
    });
    let mut lines = vec![
        (
            "UUID, PCI bus",
            format!("{}, {}", info.uuid, info.pci_bus_id),
        ),
        (
            "compute",
            format!(
                "capability {}, driver for CUDA {cuda}",
                info.compute_capability
            ),
        ),
        (
            "multiprocessors",
            format!("{}, up to {clock}", format_number(&info.multiprocessors)),
        ),
        (
            "memory",
            format!("{} {ecc}", format_byte_size(info.memory_bytes as f64)),
        ),
        (
            "memory bandwidth",
            format!(
                "{bandwidth} ({} bit at {memory_clock})",
                format_number(&info.memory_bus_bits)
            ),
        ),
        ("L2 cache", bytes(&info.l2_cache_bytes)),
        (
            "shared memory",
            format!(
                "{} a multiprocessor, {} a block",
                bytes(&info.shared_memory_bytes),
                bytes(&info.shared_memory_per_block_bytes)
            ),
        ),
        (
            "threads",
            format!(
                "{} a multiprocessor, {} a block",
                format_number(&info.max_threads),
                format_number(&info.max_threads_per_block)
            ),
        ),
        ("copy engines", format_number(&info.copy_engines)),
        ("links", format_links(&gpu.links)),
        ("TFLOP/s, dense", peaks),
    ];
    if let Some(peaks) = info.peaks.value() {
        let of = match peaks.clock_of {
            ClockSource::DataSheet => "the data sheet's clock",
            ClockSource::Driver => "the driver's highest clock",
        };
        lines.push(("", format!("at {:.0} MHz, {of}", peaks.clock_mhz)));
    }
    format_section(&format!("GPU {}: {}", info.index, info.name), &lines)
}

fn format_cpu(cpu: &Cpu) -> String {
    let caches = cpu
        .caches
        .iter()
        .map(|cache| format!("L{} {}", cache.level, format_byte_size(cache.bytes as f64)));
    let caches = caches.collect::<Vec<_>>().join(", ");
    let or_unknown = |text: String| {
        if text.is_empty() {
            UNKNOWN.to_owned()
        } else {
            text
        }
    };
    let counts = [
        format_count(cpu.sockets as u64, "chip"),
        format_count(cpu.cores as u64, "core"),
        format_count(cpu.threads as u64, "thread"),
    ];
    let lines = [
        ("parallel", counts.join(", ")),
        ("memory", format_byte_size(cpu.memory_bytes as f64)),
        ("caches", or_unknown(caches)),
        ("instructions", or_unknown(cpu.features.join(" "))),
    ];
    format_section(&format!("CPU: {}", cpu.name), &lines)
}

fn format_links(links: &Links) -> String {
    let pcie = match (links.pcie_generation.value(), links.pcie_width.value()) {
        (Some(generation), Some(width)) => format!("PCIe {generation}.0 x{width}"),
        _ => format!("PCIe {UNKNOWN}"),
    };
    let nvlink = match (links.nvlinks.value(), links.nvlink_bytes_per_second.value()) {
        (Some(0), _) => "no active NVLink".to_owned(),
        (Some(count), Some(rate)) => format!("{count} NVLinks, {:.0} GB/s each way", rate / 1e9),
        (Some(count), None) => format!("{count} NVLinks"),
        (None, _) => match links.nvlinks {
            Reading::Absent(Absence::NotSupported) => "no NVLink".to_owned(),
            _ => format!("NVLink {UNKNOWN}"),
        },
    };
    format!("{pcie}, {nvlink}")
}

/// Formats a data type and its peak rate in TFLOP/s, such as `bf16 989`.
fn format_peak(peak: &Peak) -> String {
    let name = peak.dtype.replace('_', " ");
    format!(
        "{name} {}",
        format_three_digits(peak.operations_per_second / 1e12)
    )
}

fn format_number(reading: &Reading<u32>) -> String {
    format_reading(reading, ToString::to_string)
}

fn format_reading<T>(reading: &Reading<T>, words: impl Fn(&T) -> String) -> String {
    reading.value().map_or_else(|| UNKNOWN.to_owned(), words)
}
