//! The fields of the host machine, in display order.

use super::{Color, Field, Kind, Limit, Unit, Unwatched, access::field};
use crate::model::HostSample;

macro_rules! host {
    ($($entry:tt)+) => { field!(HostSample, "host.", $($entry)+).unwatched(Unwatched::Rarely) };
}

/// All fields of the host. Their IDs start with `host.`, like their names in the history.
pub const HOST_FIELDS: &[Field<HostSample>] = &[
    host!(cpu.count, "CPU threads", "CPUs", Unit::Count)
        .help("Logical processors.")
        .kind(Kind::State)
        .prometheus_name("gpumon_host_cpus"),
    host!(cpu.busy_percent, "CPU", "CPU", Unit::Percent)
        .unwatched(Unwatched::Averaged)
        .help(
            "Share of time in which a logical processor was busy, averaged over all logical \
         processors.",
        )
        .prometheus_name("gpumon_host_cpu_utilization_ratio")
        .chart("cpu", "cpu", "Utilization", Color::Utilization),
    host!(cpu.load_1m, "Load average", "Load", Unit::Count)
        .help(
            "Threads that are running, ready to run or waiting for a disk, averaged over one \
         minute.",
        )
        .prometheus_name("gpumon_host_load1"),
    host!(memory.total_bytes, "RAM, total", "RAMTot", Unit::Bytes)
        .help("Total host memory.")
        .prometheus_name("gpumon_host_memory_total_bytes"),
    host!(memory.used_bytes, "RAM", "RAM", Unit::Bytes)
        .help("Host memory used by programs; caches that can be freed are not counted.")
        .prometheus_name("gpumon_host_memory_used_bytes")
        .chart("ram", "ram", "In use", Color::Memory)
        .limit(Limit::Field("host.memory.total_bytes")),
    host!(swap.total_bytes, "Swap, total", "SwapTot", Unit::Bytes)
        .help("Total swap space.")
        .prometheus_name("gpumon_host_swap_total_bytes"),
    host!(swap.used_bytes, "Swap", "Swap", Unit::Bytes)
        .help("Swap space in use.")
        .prometheus_name("gpumon_host_swap_used_bytes")
        .chart("swap", "ram", "Swap", Color::Line(3))
        .limit(Limit::Field("host.swap.total_bytes")),
    host!(
        disk.read_bytes_total,
        "Disk read, total",
        "Read",
        Unit::Bytes
    )
    .help("Bytes read from all disks since boot.")
    .kind(Kind::Counter)
    .prometheus_name("gpumon_host_disk_read_bytes_total"),
    host!(
        disk.written_bytes_total,
        "Disk written, total",
        "Written",
        Unit::Bytes
    )
    .help("Bytes written to all disks since boot.")
    .kind(Kind::Counter)
    .prometheus_name("gpumon_host_disk_written_bytes_total"),
    host!(
        disk.read_bytes_per_second,
        "Disk read",
        "Read/s",
        Unit::BytesPerSecond
    )
    .unwatched(Unwatched::Averaged)
    .help("Rate at which all disks are read.")
    .chart("disk-read", "disk", "Read", Color::Line(1)),
    host!(
        disk.written_bytes_per_second,
        "Disk written",
        "Write/s",
        Unit::BytesPerSecond
    )
    .unwatched(Unwatched::Averaged)
    .help("Rate at which all disks are written.")
    .chart("disk-written", "disk", "Written", Color::Line(3)),
    host!(
        network.received_bytes_total,
        "Network RX, total",
        "Recv",
        Unit::Bytes
    )
    .help("Bytes received by all network interfaces except loopback since boot.")
    .kind(Kind::Counter)
    .prometheus_name("gpumon_host_network_receive_bytes_total"),
    host!(
        network.sent_bytes_total,
        "Network TX, total",
        "Sent",
        Unit::Bytes
    )
    .help("Bytes sent by all network interfaces except loopback since boot.")
    .kind(Kind::Counter)
    .prometheus_name("gpumon_host_network_transmit_bytes_total"),
    host!(
        network.received_bytes_per_second,
        "Network RX",
        "Recv/s",
        Unit::BytesPerSecond
    )
    .unwatched(Unwatched::Averaged)
    .help("Rate at which all network interfaces except loopback receive data.")
    .chart("network-received", "network", "RX", Color::Line(1)),
    host!(
        network.sent_bytes_per_second,
        "Network TX",
        "Sent/s",
        Unit::BytesPerSecond
    )
    .unwatched(Unwatched::Averaged)
    .help("Rate at which all network interfaces except loopback send data.")
    .chart("network-sent", "network", "TX", Color::Line(3)),
];
