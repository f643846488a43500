//! The machine around the GPUs.

use gpumon_probe::model::HostSample;

use super::{
    scrape::{Scrape, count, number, ratio},
    text::{
        Kind::{self, Counter, Gauge},
        Page,
    },
};

/// One number of the machine: its name, what it is, and how it is read.
type Series = (&'static str, Kind, &'static str, fn(&HostSample) -> Option<f64>);

const SERIES: &[Series] = &[
    ("gpumon_host_cpus", Gauge, "Logical processors.", |host| number(&host.cpu.count)),
    ("gpumon_host_cpu_utilization_ratio", Gauge, "Busy share of all processors.", |host| ratio(&host.cpu.busy_percent)),
    ("gpumon_host_memory_total_bytes", Gauge, "Main memory, all of it.", |host| count(&host.memory.total_bytes)),
    ("gpumon_host_memory_used_bytes", Gauge, "Main memory that programs hold.", |host| count(&host.memory.used_bytes)),
    ("gpumon_host_swap_total_bytes", Gauge, "Swap space, all of it.", |host| count(&host.swap.total_bytes)),
    ("gpumon_host_swap_used_bytes", Gauge, "Swap space in use.", |host| count(&host.swap.used_bytes)),
    ("gpumon_host_disk_read_bytes_total", Counter, "Read from all disks since boot.", |host| {
        count(&host.disk.read_bytes_total)
    }),
    ("gpumon_host_disk_written_bytes_total", Counter, "Written to all disks since boot.", |host| {
        count(&host.disk.written_bytes_total)
    }),
    ("gpumon_host_network_receive_bytes_total", Counter, "Received by all network cards since boot.", |host| {
        count(&host.network.received_bytes_total)
    }),
    ("gpumon_host_network_transmit_bytes_total", Counter, "Sent by all network cards since boot.", |host| {
        count(&host.network.sent_bytes_total)
    }),
];

pub(super) fn write(page: &mut Page, scrape: &Scrape<'_>) {
    for (name, kind, help, read) in SERIES {
        page.family(name, *kind, help).add([], scrape.sample.and_then(|sample| read(&sample.host)));
    }
}
