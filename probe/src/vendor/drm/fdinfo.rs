//! A parser for `/proc/PID/fdinfo/FD` files of open cards, which describe a client's usage (see
//! `Documentation/gpu/drm-usage-stats.rst`).

use crate::model::normalize_bus_id;

/// A client's usage of a card. A client is one process, or several processes that share a file
/// descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::vendor) struct ClientInfo {
    /// The name of the kernel driver.
    pub(in crate::vendor) driver: String,
    /// The PCI bus ID of the card, for example `00000000:3B:00.0`.
    pub(in crate::vendor) bus_id: String,
    /// The client's ID, which is unique per card.
    pub(in crate::vendor) client: u64,
    /// The client's memory, by type.
    pub(in crate::vendor) regions: Vec<Region>,
    /// The engines that the client has used.
    pub(in crate::vendor) engines: Vec<Engine>,
}

/// A client's memory of one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::vendor) struct Region {
    /// The driver's name for this type of memory, for example `vram`.
    pub(in crate::vendor) name: String,
    /// The amount of memory that is currently resident, in bytes.
    pub(in crate::vendor) resident_bytes: Option<u64>,
    /// The amount of resident memory as reported by older drivers, in bytes.
    memory_bytes: Option<u64>,
}

/// A client's usage of one engine. The counters start when the client opens the card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::vendor) struct Engine {
    /// The driver's name for the engine, for example `gfx`.
    pub(in crate::vendor) name: String,
    /// The total time that the engine has worked for the client, in nanoseconds.
    pub(in crate::vendor) busy_ns: Option<u64>,
    /// The number of clock cycles that the engine has worked for the client.
    pub(in crate::vendor) cycles: Option<u64>,
    /// The total number of the engine's clock cycles.
    pub(in crate::vendor) total_cycles: Option<u64>,
    /// The number of engines that share this name.
    pub(in crate::vendor) capacity: u32,
}

impl Region {
    /// Returns the memory that the client uses, in bytes. A buffer that several clients share
    /// counts in full for each client.
    pub(in crate::vendor) fn bytes(&self) -> u64 {
        self.resident_bytes.or(self.memory_bytes).unwrap_or(0)
    }
}

impl ClientInfo {
    /// Parses the content of an `fdinfo` file. Returns `None` if required lines are missing.
    pub(in crate::vendor) fn parse(text: &str) -> Option<Self> {
        let (mut driver, mut bus_id, mut client) = (None, None, None);
        let (mut regions, mut engines) = (Vec::new(), Vec::new());
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
    pub(in crate::vendor) fn sum_memory(&self, prefix: &str) -> u64 {
        let regions = self
            .regions
            .iter()
            .filter(|region| region.name.starts_with(prefix));
        regions.fold(0, |sum: u64, region| sum.saturating_add(region.bytes()))
    }
}

fn parse_usage_line(key: &str, value: &str, regions: &mut Vec<Region>, engines: &mut Vec<Engine>) {
    if let Some(name) = key.strip_prefix("resident-") {
        find_region(regions, name).resident_bytes = parse_bytes(value);
    } else if let Some(name) = key.strip_prefix("memory-") {
        find_region(regions, name).memory_bytes = parse_bytes(value);
    } else if let Some(name) = key.strip_prefix("engine-capacity-") {
        find_engine(engines, name).capacity = value.parse().unwrap_or(1).max(1);
    } else if let Some(name) = key.strip_prefix("engine-") {
        find_engine(engines, name).busy_ns = parse_first_number(value);
    } else if let Some(name) = key.strip_prefix("total-cycles-") {
        find_engine(engines, name).total_cycles = parse_first_number(value);
    } else if let Some(name) = key.strip_prefix("cycles-") {
        find_engine(engines, name).cycles = parse_first_number(value);
    }
}

fn find_region<'a>(regions: &'a mut Vec<Region>, name: &str) -> &'a mut Region {
    let position = regions.iter().position(|region| region.name == name);
    let position = position.unwrap_or_else(|| {
        regions.push(Region {
            name: name.to_owned(),
            resident_bytes: None,
            memory_bytes: None,
        });
        regions.len() - 1
    });
    &mut regions[position]
}

fn find_engine<'a>(engines: &'a mut Vec<Engine>, name: &str) -> &'a mut Engine {
    let position = engines.iter().position(|engine| engine.name == name);
    let position = position.unwrap_or_else(|| {
        let name = name.to_owned();
        let engine = Engine {
            name,
            busy_ns: None,
            cycles: None,
            total_cycles: None,
            capacity: 1,
        };
        engines.push(engine);
        engines.len() - 1
    });
    &mut engines[position]
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
        let busy: Vec<_> = client.engines.iter().map(|engine| engine.busy_ns).collect();
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
        let [engine] = &client.engines[..] else {
            panic!("{client:?}")
        };
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
