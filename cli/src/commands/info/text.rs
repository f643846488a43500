//! What there is, for people: a block for each GPU and one for the CPU.

use gpumon_probe::{model::Reading, units::byte_size};
use gpumon_workload::info::{ClockOf, Cpu, Peak};

use super::{GpuWithLinks, Machine, links::Links};
use crate::terminal::{
    style::{STRONG, paint},
    units::three_digits,
};

const UNKNOWN: &str = "unknown";
const LABEL: usize = 18;

pub(super) fn of(machine: &Machine) -> String {
    let gpus = machine
        .gpus
        .iter()
        .map(|gpu| block_of_gpu(gpu, machine.cuda.as_deref().unwrap_or(UNKNOWN)));
    gpus.chain([block_of_cpu(&machine.cpu)])
        .collect::<Vec<_>>()
        .join("\n")
}

fn block_of_gpu(gpu: &GpuWithLinks, cuda: &str) -> String {
    let info = &gpu.info;
    let bytes = |reading: &Reading<u64>| say(reading, |bytes| byte_size(*bytes as f64));
    let clock = say(&info.max_clock_mhz, |mhz| format!("{mhz:.0} MHz"));
    let memory_clock = say(&info.memory_clock_mhz, |mhz| format!("{mhz:.0} MHz"));
    let bandwidth = say(&info.memory_bytes_per_second, |rate| {
        format!("{} TB/s", three_digits(rate / 1e12))
    });
    let ecc = say(&info.ecc, |on| {
        if *on { "with ECC" } else { "without ECC" }.to_owned()
    });
    let (peaks, at) = info
        .peaks
        .value()
        .map_or((UNKNOWN.to_owned(), String::new()), |peaks| {
            let of = match peaks.clock_of {
                ClockOf::DataSheet => "the data sheet's clock",
                ClockOf::Driver => "the driver's highest clock",
            };
            (
                peaks
                    .by_type
                    .iter()
                    .map(peak)
                    .collect::<Vec<_>>()
                    .join(", "),
                format!("{:.0} MHz, {of}", peaks.clock_mhz),
            )
        });
    let mut lines = vec![
        paint(STRONG, &format!("GPU {}: {}", info.index, info.name)),
        line(
            "UUID, PCI bus",
            &format!("{}, {}", info.uuid, info.pci_bus_id),
        ),
        line(
            "compute",
            &format!(
                "capability {}, driver for CUDA {cuda}",
                info.compute_capability
            ),
        ),
        line(
            "multiprocessors",
            &format!("{}, up to {clock}", whole(&info.multiprocessors)),
        ),
        line(
            "memory",
            &format!("{} {ecc}", byte_size(info.memory_bytes as f64)),
        ),
        line(
            "memory bandwidth",
            &format!(
                "{bandwidth} ({} bit at {memory_clock})",
                whole(&info.memory_bus_bits)
            ),
        ),
        line("L2 cache", &bytes(&info.l2_cache_bytes)),
        line(
            "shared memory",
            &format!(
                "{} a multiprocessor, {} a block",
                bytes(&info.shared_memory_bytes),
                bytes(&info.shared_memory_per_block_bytes)
            ),
        ),
        line(
            "threads",
            &format!(
                "{} a multiprocessor, {} a block",
                whole(&info.max_threads),
                whole(&info.max_threads_per_block)
            ),
        ),
        line("copy engines", &whole(&info.copy_engines)),
        line("links", &links(&gpu.links)),
        line("TFLOP/s, dense", &peaks),
    ];
    if !at.is_empty() {
        lines.push(line("", &format!("at {at}")));
    }
    lines.join("\n") + "\n"
}

fn block_of_cpu(cpu: &Cpu) -> String {
    let caches = cpu
        .caches
        .iter()
        .map(|cache| format!("L{} {}", cache.level, byte_size(cache.bytes as f64)));
    let caches = caches.collect::<Vec<_>>().join(", ");
    let or_unknown = |text: String| {
        if text.is_empty() {
            UNKNOWN.to_owned()
        } else {
            text
        }
    };
    let lines = [
        paint(STRONG, &format!("CPU: {}", cpu.name)),
        line(
            "parallel",
            &[
                count(cpu.sockets, "chip"),
                count(cpu.cores, "core"),
                count(cpu.threads, "thread"),
            ]
            .join(", "),
        ),
        line("memory", &byte_size(cpu.memory_bytes as f64)),
        line("caches", &or_unknown(caches)),
        line("instructions", &or_unknown(cpu.features.join(" "))),
    ];
    lines.join("\n") + "\n"
}

fn links(links: &Links) -> String {
    let pcie = match (links.pcie_generation.value(), links.pcie_width.value()) {
        (Some(generation), Some(width)) => format!("PCIe {generation}.0 x{width}"),
        _ => format!("PCIe {UNKNOWN}"),
    };
    let nvlink = match (links.nvlinks.value(), links.nvlink_bytes_per_second.value()) {
        (Some(0), _) => "no NVLink up".to_owned(),
        (Some(count), Some(rate)) => format!("{count} NVLinks, {:.0} GB/s each way", rate / 1e9),
        (Some(count), None) => format!("{count} NVLinks"),
        (None, _) => match links.nvlinks {
            Reading::Absent(gpumon_probe::model::Absence::NotSupported) => "no NVLink".to_owned(),
            _ => format!("NVLink {UNKNOWN}"),
        },
    };
    format!("{pcie}, {nvlink}")
}

/// `bf16 989`.
fn peak(peak: &Peak) -> String {
    let name = peak.dtype.replace('_', " ");
    format!("{name} {}", three_digits(peak.operations_per_second / 1e12))
}

/// `1 chip`, `2 cores`.
fn count(number: usize, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

fn line(label: &str, text: &str) -> String {
    format!("  {label:LABEL$}{text}")
}

fn whole(reading: &Reading<u32>) -> String {
    say(reading, ToString::to_string)
}

fn say<T>(reading: &Reading<T>, words: impl Fn(&T) -> String) -> String {
    reading.value().map_or_else(|| UNKNOWN.to_owned(), words)
}
