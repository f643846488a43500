//! The fields of the machine around the GPUs.

use super::{Access, Color, Field, Kind, Limit, Unit, access::at};
use crate::model::HostSample;

/// What an entry begins with; it tells the compiler of what the fields are.
const fn host(
    id: &'static str,
    label: &'static str,
    short_label: &'static str,
    unit: Unit,
    access: Access<HostSample>,
    help: &'static str,
) -> Field<HostSample> {
    Field::new(id, label, short_label, unit, access, help)
}

/// Every number of the machine. Their ids begin with `host.`, as their names in history do.
pub const HOST_FIELDS: &[Field<HostSample>] = &[
    host("host.cpu.count", "CPU threads", "CPUs", Unit::Count, at!(cpu.count), "Logical processors.")
        .kind(Kind::State)
        .prometheus("gpumon_host_cpus"),
    host(
        "host.cpu.busy_percent",
        "CPU",
        "CPU",
        Unit::Percent,
        at!(cpu.busy_percent),
        "Time in which a logical processor was busy, averaged over all of them.",
    )
    .prometheus("gpumon_host_cpu_utilization_ratio")
    .chart("cpu", "cpu", "CPU", Color::Utilization),
    host(
        "host.memory.total_bytes",
        "RAM, total",
        "RAMTot",
        Unit::Bytes,
        at!(memory.total_bytes),
        "Main memory, all of it.",
    )
    .prometheus("gpumon_host_memory_total_bytes"),
    host(
        "host.memory.used_bytes",
        "RAM",
        "RAM",
        Unit::Bytes,
        at!(memory.used_bytes),
        "Main memory that programs hold; caches that can be given back are not counted.",
    )
    .prometheus("gpumon_host_memory_used_bytes")
    .chart("ram", "ram", "RAM", Color::Memory)
    .limit(Limit::Field("host.memory.total_bytes")),
    host(
        "host.swap.total_bytes",
        "Swap, total",
        "SwapTot",
        Unit::Bytes,
        at!(swap.total_bytes),
        "Swap space, all of it.",
    )
    .prometheus("gpumon_host_swap_total_bytes"),
    host("host.swap.used_bytes", "Swap", "Swap", Unit::Bytes, at!(swap.used_bytes), "Swap space in use.")
        .prometheus("gpumon_host_swap_used_bytes")
        .chart("swap", "ram", "Swap", Color::Line(3))
        .limit(Limit::Field("host.swap.total_bytes")),
    host(
        "host.disk.read_bytes_total",
        "Disk read, total",
        "Read",
        Unit::Bytes,
        at!(disk.read_bytes_total),
        "Bytes read from all disks since boot.",
    )
    .kind(Kind::Counter)
    .prometheus("gpumon_host_disk_read_bytes_total"),
    host(
        "host.disk.written_bytes_total",
        "Disk written, total",
        "Written",
        Unit::Bytes,
        at!(disk.written_bytes_total),
        "Bytes written to all disks since boot.",
    )
    .kind(Kind::Counter)
    .prometheus("gpumon_host_disk_written_bytes_total"),
    host(
        "host.disk.read_bytes_per_second",
        "Disk read",
        "Read/s",
        Unit::BytesPerSecond,
        at!(disk.read_bytes_per_second),
        "Rate at which all disks are read.",
    )
    .chart("disk-read", "disk", "Read", Color::Line(1)),
    host(
        "host.disk.written_bytes_per_second",
        "Disk written",
        "Write/s",
        Unit::BytesPerSecond,
        at!(disk.written_bytes_per_second),
        "Rate at which all disks are written.",
    )
    .chart("disk-written", "disk", "Written", Color::Line(3)),
    host(
        "host.network.received_bytes_total",
        "Network RX, total",
        "Recv",
        Unit::Bytes,
        at!(network.received_bytes_total),
        "Bytes received by all network interfaces but loopback since boot.",
    )
    .kind(Kind::Counter)
    .prometheus("gpumon_host_network_receive_bytes_total"),
    host(
        "host.network.sent_bytes_total",
        "Network TX, total",
        "Sent",
        Unit::Bytes,
        at!(network.sent_bytes_total),
        "Bytes sent by all network interfaces but loopback since boot.",
    )
    .kind(Kind::Counter)
    .prometheus("gpumon_host_network_transmit_bytes_total"),
    host(
        "host.network.received_bytes_per_second",
        "Network RX",
        "Recv/s",
        Unit::BytesPerSecond,
        at!(network.received_bytes_per_second),
        "Rate at which all network interfaces but loopback receive.",
    )
    .chart("network-received", "network", "RX", Color::Line(1)),
    host(
        "host.network.sent_bytes_per_second",
        "Network TX",
        "Sent/s",
        Unit::BytesPerSecond,
        at!(network.sent_bytes_per_second),
        "Rate at which all network interfaces but loopback send.",
    )
    .chart("network-sent", "network", "TX", Color::Line(3)),
];
