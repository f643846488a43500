//! The machine around the GPUs, through sysinfo.

use std::{collections::HashMap, ffi::OsStr, path::Path};

use sysinfo::{DiskRefreshKind, Disks, Networks, System};

use crate::model::{Absence, CpuSample, DiskSample, HostSample, NetworkSample, RamSample, Reading, now_ms};

/// Reads processors, memory, disks and network cards; what the system does not give is absent.
#[derive(Debug)]
pub struct HostReader {
    system: Option<System>,
    disks: Option<Disks>,
    networks: Option<Networks>,
    reads: u32,
}

impl HostReader {
    /// Finds out what there is.
    pub fn new() -> Self {
        Self { system: System::new().ok(), disks: Disks::new().ok(), networks: Networks::new().ok(), reads: 0 }
    }

    /// The machine now. Rates are left to `derive`.
    pub fn read(&mut self) -> HostSample {
        if let Some(system) = &mut self.system {
            system.refresh_cpu_usage();
            system.refresh_memory();
        }
        if let Some(disks) = &mut self.disks {
            // No storage: asking a network file system for its size can block for minutes.
            disks.refresh_specifics(true, DiskRefreshKind::nothing().with_io_usage());
        }
        if let Some(networks) = &mut self.networks {
            networks.refresh(true);
        }
        self.reads = self.reads.saturating_add(1);
        let system = self.system.as_ref();
        let disks = self.disks.as_ref().map(disk_totals);
        let networks = self.networks.as_ref().map(network_totals);
        HostSample {
            at_ms: now_ms(),
            cpu: CpuSample {
                count: reading(system, |system| system.cpus().len() as u32),
                busy_percent: self.cpu_busy(),
            },
            memory: RamSample {
                total_bytes: reading(system, System::total_memory),
                used_bytes: reading(system, System::used_memory),
            },
            swap: RamSample {
                total_bytes: reading(system, System::total_swap),
                used_bytes: reading(system, System::used_swap),
            },
            disk: DiskSample {
                read_bytes_total: reading(disks.as_ref(), |totals| totals.0),
                written_bytes_total: reading(disks.as_ref(), |totals| totals.1),
                read_bytes_per_second: Reading::Absent(Absence::WarmingUp),
                written_bytes_per_second: Reading::Absent(Absence::WarmingUp),
            },
            network: NetworkSample {
                received_bytes_total: reading(networks.as_ref(), |totals| totals.0),
                sent_bytes_total: reading(networks.as_ref(), |totals| totals.1),
                received_bytes_per_second: Reading::Absent(Absence::WarmingUp),
                sent_bytes_per_second: Reading::Absent(Absence::WarmingUp),
            },
        }
    }

    /// Busy time between two reads, so that the first has none.
    fn cpu_busy(&self) -> Reading<f64> {
        match &self.system {
            Some(_) if self.reads < 2 => Reading::Absent(Absence::WarmingUp),
            system => reading(system.as_ref(), |system| (f64::from(system.global_cpu_usage()) * 10.0).round() / 10.0),
        }
    }
}

impl Default for HostReader {
    fn default() -> Self {
        Self::new()
    }
}

fn reading<R, T>(reader: Option<&R>, read: impl FnOnce(&R) -> T) -> Reading<T> {
    reader.map_or(Reading::Absent(Absence::NotSupported), |reader| Reading::Now(read(reader)))
}

/// Bytes read and written; each disk counts once, also where it is mounted in several places.
fn disk_totals(disks: &Disks) -> (u64, u64) {
    let by_name: HashMap<&OsStr, _> = disks.iter().map(|disk| (disk.name(), disk.usage())).collect();
    by_name
        .values()
        .fold((0, 0), |(read, written), usage| (read + usage.total_read_bytes, written + usage.total_written_bytes))
}

/// Bytes received and sent by the physical cards, since bridges and containers' cards count the same bytes again.
/// Inside a container there are no physical cards, so there all but loopback count.
fn network_totals(networks: &Networks) -> (u64, u64) {
    let is_physical = |name: &&OsStr| Path::new("/sys/class/net").join(name).join("device").exists();
    let any_physical = networks.keys().any(|name| is_physical(&OsStr::new(name)));
    networks
        .iter()
        .map(|(name, card)| (OsStr::new(name), card))
        .filter(|(name, _)| if any_physical { is_physical(name) } else { *name != "lo" })
        .fold((0, 0), |(received, sent), (_, card)| (received + card.total_received(), sent + card.total_transmitted()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_processors_and_memory() {
        let mut reader = HostReader::new();
        let first = reader.read();
        assert_eq!(first.cpu.busy_percent, Reading::Absent(Absence::WarmingUp));
        assert!(first.cpu.count.value().is_some_and(|count| *count >= 1));
        assert!(first.memory.total_bytes.value().is_some_and(|total| *total > 0));
        assert!(first.memory.used_bytes.value() <= first.memory.total_bytes.value());
        let second = reader.read();
        assert!(second.cpu.busy_percent.value().is_some());
        assert!(second.network.received_bytes_total.value() >= first.network.received_bytes_total.value());
    }
}
