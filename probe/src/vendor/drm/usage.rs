//! Each process's usage of a card, calculated from two scans, and the parser for the `fdinfo` files
//! that contain the usage.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, Instant},
};

use super::{Client, ScanResult};
use crate::model::{Absence, Process, ProcessKind, Reading, normalize_bus_id};

/// The names that a vendor's drivers use for types of memory and engines.
#[derive(Debug)]
pub(crate) struct Names {
    /// The prefixes of names for the GPU's own memory.
    pub(crate) memory: &'static [&'static str],
    /// The prefixes of names for the machine's memory. GPUs without their own memory use this
    /// memory.
    pub(crate) shared_memory: &'static [&'static str],
    /// The names of graphics engines.
    pub(crate) graphics: &'static [&'static str],
    /// The names of compute engines.
    pub(crate) compute: &'static [&'static str],
    /// The names of video encoding engines.
    pub(crate) encoders: &'static [&'static str],
    /// The names of video decoding engines.
    pub(crate) decoders: &'static [&'static str],
}

/// The counters of a card's clients at the last scan, and the shares of engine time calculated from
/// them.
#[derive(Debug)]
pub(crate) struct Usage {
    names: &'static Names,
    at: Option<Instant>,
    /// Each client's engine counters at the last scan.
    counters: HashMap<u64, Engines>,
    /// For each client and engine, the share of time in which the engine worked for the client, in
    /// percent.
    shares: HashMap<u64, BTreeMap<String, f64>>,
}

impl Usage {
    pub(crate) fn new(names: &'static Names) -> Self {
        Self {
            names,
            at: None,
            counters: HashMap::new(),
            shares: HashMap::new(),
        }
    }

    /// Updates the shares from a new scan's clients. A scan that has already been processed has no
    /// effect.
    pub(crate) fn update(&mut self, at: Instant, clients: &[&Client]) {
        if self.at.is_some_and(|last| at <= last) {
            return;
        }
        let elapsed = self
            .at
            .map_or(Duration::ZERO, |last| at.duration_since(last));
        let shares = clients.iter().filter_map(|client| {
            let earlier = self.counters.get(&client.info.client)?;
            Some((
                client.info.client,
                compute_shares(earlier, &client.info.engines, elapsed),
            ))
        });
        self.shares = shares.collect();
        let counters = clients
            .iter()
            .map(|own| (own.info.client, own.info.engines.clone()));
        self.counters = counters.collect();
        self.at = Some(at);
    }

    /// Returns the share of time in which `engines` worked for a client, in percent. Returns `None`
    /// if the client was missing in one of the last two scans.
    fn client_engine_percent(&self, client: u64, engines: &[&str]) -> Option<f64> {
        let shares = self.shares.get(&client)?;
        let own = shares
            .iter()
            .filter(|(name, _)| engines.contains(&name.as_str()));
        Some(own.map(|(_, share)| share).sum())
    }

    /// Returns the processes of `clients`, sorted by PID. The processes' names and owners are
    /// absent.
    pub(crate) fn list_processes(&self, clients: &[&Client], is_unified: bool) -> Vec<Process> {
        let mut by_pid: BTreeMap<u32, Vec<&Client>> = BTreeMap::new();
        for client in clients {
            by_pid.entry(client.pid).or_default().push(client);
        }
        by_pid
            .into_iter()
            .filter_map(|(pid, clients)| self.make_process(pid, &clients, is_unified))
            .collect()
    }

    /// Returns the usage of a process, or `None` if the process has the card open but does not use
    /// it.
    fn make_process(&self, pid: u32, clients: &[&Client], is_unified: bool) -> Option<Process> {
        let machine = if is_unified {
            self.names.shared_memory
        } else {
            &[]
        };
        let kinds = || self.names.memory.iter().chain(machine);
        let bytes = clients
            .iter()
            .flat_map(|client| kinds().map(|prefix| client.info.sum_memory(prefix)))
            .fold(0_u64, u64::saturating_add);
        let has_used = |engines: &[&str]| {
            let mut all = clients.iter().flat_map(|client| &client.info.engines);
            all.any(|(name, engine)| engines.contains(&name.as_str()) && engine.was_used())
        };
        let (draws, computes) = (has_used(self.names.graphics), has_used(self.names.compute));
        let is_used = clients
            .iter()
            .any(|client| client.info.engines.values().any(Engine::was_used));
        if bytes == 0 && !is_used {
            return None;
        }
        let share = |engines: &[&str]| {
            let shares: Vec<_> = clients
                .iter()
                .filter_map(|own| self.client_engine_percent(own.info.client, engines))
                .collect();
            if shares.is_empty() {
                return Reading::Absent(Absence::WarmingUp);
            }
            Reading::Now(shares.iter().sum::<f64>().min(100.0))
        };
        let kind = match (draws, computes) {
            (true, true) => ProcessKind::ComputeAndGraphics,
            (true, false) => ProcessKind::Graphics,
            (false, _) => ProcessKind::Compute,
        };
        let working = [self.names.graphics, self.names.compute].concat();
        // Programs can submit work directly to the GPU, and the kernel does not count such work. A
        // process without counted work may therefore be working, so its share is not reported as 0.
        let working = if draws || computes {
            share(&working)
        } else {
            Reading::NOT_SUPPORTED
        };
        Some(Process {
            sm_percent: working,
            encoder_percent: share(self.names.encoders),
            decoder_percent: share(self.names.decoders),
            ..Process::new_unnamed(pid, kind, Reading::Now(bytes))
        })
    }
}

impl Engine {
    fn was_used(&self) -> bool {
        self.busy_ns
            .or(self.cycles)
            .is_some_and(|counter| counter > 0)
    }
}

fn compute_shares(earlier: &Engines, now: &Engines, elapsed: Duration) -> BTreeMap<String, f64> {
    let period_ns = elapsed.max(Duration::from_millis(1)).as_secs_f64() * 1e9;
    let growth = |earlier: Option<u64>, now: Option<u64>| {
        // A client has no counter for an engine until it uses the engine, so a missing earlier
        // value counts as 0.
        now?.checked_sub(earlier.unwrap_or(0))
            .map(|growth| growth as f64)
    };
    let share = |(name, engine): (&String, &Engine)| {
        let before = earlier.get(name);
        let busy = growth(before.and_then(|own| own.busy_ns), engine.busy_ns);
        let cycles = growth(before.and_then(|own| own.cycles), engine.cycles);
        let all = growth(before.and_then(|own| own.total_cycles), engine.total_cycles);
        let share = match (busy, cycles, all) {
            (Some(busy), ..) => busy / period_ns,
            // A client's cycles cover its whole lifetime. When the client is seen for the first
            // time, its cycles since the last scan are unknown, so it has no share.
            (None, Some(cycles), Some(all)) if before.is_some() && all > 0.0 => cycles / all,
            _ => return None,
        };
        let percent = (share / f64::from(engine.capacity.max(1)) * 100.0).clamp(0.0, 100.0);
        Some((name.clone(), percent))
    };
    now.iter().filter_map(share).collect()
}

impl ScanResult {
    /// Returns the clients of the card with the PCI bus ID `bus_id`.
    pub(crate) fn find_card_clients(&self, bus_id: &str) -> Vec<&Client> {
        self.clients
            .iter()
            .filter(|client| client.info.bus_id == bus_id)
            .collect()
    }
}

/// A client's usage of a card, from the file `/proc/PID/fdinfo/FD` (see
/// `Documentation/gpu/drm-usage-stats.rst`). A client is one process, or several processes that
/// share a file descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientInfo {
    /// The name of the kernel driver.
    pub(crate) driver: String,
    /// The PCI bus ID of the card, for example `00000000:3B:00.0`.
    pub(crate) bus_id: String,
    /// The client's ID, which is unique per card.
    pub(crate) client: u64,
    /// The client's memory, by the driver's name for the type of memory, for example `vram`.
    regions: BTreeMap<String, Region>,
    engines: Engines,
}

/// The engines that a client has used, by the driver's name for the engine, for example `gfx`.
type Engines = BTreeMap<String, Engine>;

/// A client's memory of one type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Region {
    /// The amount of memory that is currently resident, in bytes.
    resident_bytes: Option<u64>,
    /// The amount of resident memory, in bytes, as reported by older drivers, which use another
    /// name for it.
    memory_bytes: Option<u64>,
}

/// A client's usage of one engine. The counters start when the client opens the card.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Engine {
    /// The total time that the engine has worked for the client, in nanoseconds.
    busy_ns: Option<u64>,
    /// The number of clock cycles that the engine has worked for the client.
    cycles: Option<u64>,
    /// The total number of the engine's clock cycles.
    total_cycles: Option<u64>,
    /// The number of engines that have this name, or 0 if the driver does not report it.
    capacity: u32,
}

impl Region {
    /// Returns the memory that the client uses, in bytes. A buffer that several clients share
    /// counts in full for each client.
    fn bytes(&self) -> u64 {
        self.resident_bytes.or(self.memory_bytes).unwrap_or(0)
    }
}

impl ClientInfo {
    /// Parses the content of an `fdinfo` file. Returns `None` if required lines are missing.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (mut driver, mut bus_id, mut client) = (None, None, None);
        let (mut regions, mut engines) = (BTreeMap::new(), BTreeMap::new());
        for line in text.lines() {
            let Some((key, value)) = line
                .strip_prefix("drm-")
                .and_then(|line| line.split_once(':'))
            else {
                continue;
            };
            let value = value.trim();
            match key {
                "driver" => driver = Some(value.to_owned()),
                "pdev" => bus_id = normalize_bus_id(value),
                "client-id" => client = value.parse().ok(),
                _ => parse_usage_line(key, value, &mut regions, &mut engines),
            }
        }
        Some(Self {
            driver: driver?,
            bus_id: bus_id?,
            client: client?,
            regions,
            engines,
        })
    }

    /// Returns the total memory of all types whose names start with `prefix`, in bytes.
    pub(crate) fn sum_memory(&self, prefix: &str) -> u64 {
        let regions = self.regions.iter();
        regions
            .filter(|(name, _)| name.starts_with(prefix))
            .fold(0, |sum: u64, (_, region)| {
                sum.saturating_add(region.bytes())
            })
    }
}

fn parse_usage_line(
    key: &str,
    value: &str,
    regions: &mut BTreeMap<String, Region>,
    engines: &mut Engines,
) {
    if let Some(name) = key.strip_prefix("resident-") {
        regions.entry(name.to_owned()).or_default().resident_bytes = parse_bytes(value);
    } else if let Some(name) = key.strip_prefix("memory-") {
        regions.entry(name.to_owned()).or_default().memory_bytes = parse_bytes(value);
    } else if let Some(name) = key.strip_prefix("engine-capacity-") {
        engines.entry(name.to_owned()).or_default().capacity = value.parse().unwrap_or(0);
    } else if let Some(name) = key.strip_prefix("engine-") {
        engines.entry(name.to_owned()).or_default().busy_ns = parse_first_number(value);
    } else if let Some(name) = key.strip_prefix("total-cycles-") {
        engines.entry(name.to_owned()).or_default().total_cycles = parse_first_number(value);
    } else if let Some(name) = key.strip_prefix("cycles-") {
        engines.entry(name.to_owned()).or_default().cycles = parse_first_number(value);
    }
}

fn parse_first_number(value: &str) -> Option<u64> {
    value.split_whitespace().next()?.parse().ok()
}

/// Parses an amount of memory. Each line can have a different unit; a number without a unit is in
/// bytes.
fn parse_bytes(value: &str) -> Option<u64> {
    let mut words = value.split_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    let unit = match words.next() {
        None => 1,
        Some("KiB") => 1 << 10,
        Some("MiB") => 1 << 20,
        Some("GiB") => 1 << 30,
        Some(_) => return None,
    };
    number.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::drm::ClientInfo;

    static NAMES: Names = Names {
        memory: &["vram"],
        shared_memory: &["gtt"],
        graphics: &["gfx"],
        compute: &["compute"],
        encoders: &["enc"],
        decoders: &["dec"],
    };

    fn parse_client(pid: u32, number: u64, lines: &str) -> Client {
        let text =
            format!("drm-driver:\ta\ndrm-client-id:\t{number}\ndrm-pdev:\t0000:03:00.0\n{lines}");
        Client {
            pid,
            minor: 128,
            info: ClientInfo::parse(&text).unwrap(),
        }
    }

    #[test]
    fn engine_shares_are_counter_growth_over_time() {
        let mut usage = Usage::new(&NAMES);
        let start = Instant::now();
        let first = parse_client(
            7,
            1,
            "drm-engine-gfx:\t1000000000 ns\ndrm-memory-vram:\t1 MiB\n",
        );
        usage.update(start, &[&first]);
        assert_eq!(
            usage.list_processes(&[&first], false)[0].sm_percent,
            Reading::Absent(Absence::WarmingUp)
        );
        let later = parse_client(
            7,
            1,
            "drm-engine-gfx:\t1250000000 ns\ndrm-engine-compute:\t100000000 ns\n\
             drm-engine-enc:\t0 ns\ndrm-memory-vram:\t1 MiB\n",
        );
        usage.update(start + Duration::from_secs(1), &[&later]);
        let [process] = &usage.list_processes(&[&later], false)[..] else {
            panic!("one process")
        };
        let Reading::Now(share) = process.sm_percent else {
            panic!("{process:?}")
        };
        assert!((share - 35.0).abs() < 1e-9);
        assert_eq!(process.encoder_percent, Reading::Now(0.0));
        assert_eq!(process.kind, ProcessKind::ComputeAndGraphics);
        assert_eq!(process.memory_bytes, Reading::Now(1 << 20));
    }

    #[test]
    fn engine_share_is_busy_cycles_divided_by_total() {
        let mut usage = Usage::new(&NAMES);
        let start = Instant::now();
        let lines = |own: u32, all: u32| {
            format!(
                "drm-cycles-gfx:\t{own}\ndrm-total-cycles-gfx:\t{all}\n\
                 drm-engine-capacity-gfx:\t2\n"
            )
        };
        usage.update(start, &[&parse_client(7, 1, &lines(100, 1000))]);
        let later = parse_client(7, 1, &lines(600, 2000));
        usage.update(start + Duration::from_secs(1), &[&later]);
        assert_eq!(usage.client_engine_percent(1, &["gfx"]), Some(25.0));
    }

    #[test]
    fn clients_of_process_are_summed() {
        let usage = Usage::new(&NAMES);
        let clients = [
            parse_client(7, 1, "drm-memory-vram:\t1 MiB\n"),
            parse_client(7, 2, "drm-memory-vram:\t2 MiB\ndrm-memory-gtt:\t9 MiB\n"),
            parse_client(8, 3, "drm-memory-gtt:\t4 MiB\n"),
            parse_client(9, 4, "drm-memory-vram:\t0\ndrm-engine-gfx:\t0 ns\n"),
        ];
        let processes = usage.list_processes(&clients.iter().collect::<Vec<_>>(), true);
        let memory: Vec<_> = processes
            .iter()
            .map(|own| (own.pid, own.memory_bytes.value().copied()))
            .collect();
        assert_eq!(memory, [(7, Some(12 << 20)), (8, Some(4 << 20))]);
    }
}

#[cfg(test)]
mod fdinfo_tests {
    use super::*;

    #[test]
    fn amdgpu_client_has_memory_and_engines() {
        let text = "pos:\t0\nflags:\t02100002\ndrm-driver:\tamdgpu\ndrm-client-id:\t42\n\
                    drm-pdev:\t0000:03:00.0\npasid:\t32771\ndrm-memory-vram:\t2048 KiB\n\
                    drm-memory-gtt: \t1 MiB\ndrm-resident-vram:\t2049 KiB\n\
                    drm-engine-gfx:\t1500 ns\ndrm-engine-compute:\t7 ns\n";
        let client = ClientInfo::parse(text).unwrap();
        assert_eq!((client.driver.as_str(), client.client), ("amdgpu", 42));
        assert_eq!(client.bus_id, "00000000:03:00.0");
        assert_eq!(client.sum_memory("vram"), 2049 << 10);
        assert_eq!(client.sum_memory("gtt"), 1 << 20);
        let busy = ["gfx", "compute"].map(|name| client.engines[name].busy_ns);
        assert_eq!(busy, [Some(1500), Some(7)]);
    }

    #[test]
    fn xe_client_has_cycles_and_capacity() {
        let text = "drm-driver:\txe\ndrm-client-id:\t7\ndrm-pdev:\t0000:00:02.0\n\
                    drm-resident-system:\t0\ndrm-resident-vram0:\t23992 KiB\n\
                    drm-cycles-vcs:\t100\ndrm-total-cycles-vcs:\t4000\n\
                    drm-engine-capacity-vcs:\t2\n";
        let client = ClientInfo::parse(text).unwrap();
        assert_eq!(client.sum_memory("vram"), 23992 << 10);
        let engine = &client.engines["vcs"];
        assert_eq!(client.engines.len(), 1, "{client:?}");
        assert_eq!(
            (engine.cycles, engine.total_cycles),
            (Some(100), Some(4000))
        );
        assert_eq!(engine.capacity, 2);
    }

    #[test]
    fn incomplete_fdinfo_is_not_counted_as_client() {
        for text in [
            "",
            "pos:\t0\nflags:\t02\n",
            "drm-driver:\tamdgpu\n",
            "drm-driver:\tamdgpu\ndrm-client-id:\tx\ndrm-pdev:\t0000:03:00.0\n",
            "drm-driver:\tvc4\ndrm-client-id:\t1\n",
        ] {
            assert_eq!(ClientInfo::parse(text), None, "{text}");
        }
        let huge = "drm-driver:\ta\ndrm-client-id:\t1\ndrm-pdev:\t0:1:0\n\
                    drm-memory-vram:\t18446744073709551615 MiB\ndrm-memory-x:\t1 TB\n";
        assert_eq!(ClientInfo::parse(huge).unwrap().sum_memory(""), 0);
    }
}
