//! The CPU, as described by the operating system.

use std::{collections::BTreeSet, fs, path::Path};

use gpumon_probe::bounded;
use serde::Serialize;

use crate::memory_budget::parse_kib;

/// The instruction sets that affect computing speed. Their names are the kernel's.
const FEATURES: [&str; 10] = [
    "sse4_2",
    "avx",
    "fma",
    "avx2",
    "avx512f",
    "avx512_bf16",
    "avx512_fp16",
    "amx_tile",
    "asimd",
    "sve",
];

/// The properties of a CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cpu {
    /// The CPU's name, as given by its vendor.
    pub name: String,
    /// The number of CPU sockets in use.
    pub sockets: usize,
    /// The total number of cores in all sockets.
    pub cores: usize,
    /// The total number of hardware threads.
    pub threads: usize,
    /// The total memory of the host, in bytes.
    pub memory_bytes: u64,
    /// The caches of all cores, by level from the smallest to the largest. Instruction caches are
    /// not included.
    pub caches: Vec<Cache>,
    /// The supported instruction sets that affect computing speed.
    pub features: Vec<&'static str>,
}

/// All caches of the same level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cache {
    /// The cache level. Level 1 is nearest to a core.
    pub level: u32,
    /// The total size of all caches of this level.
    pub bytes: u64,
}

impl Cpu {
    /// Reads the properties of this machine's CPU.
    pub fn read() -> Self {
        Self::read_from(Path::new("/"))
    }

    /// Returns the size in bytes of the last cache before memory.
    pub fn last_cache_bytes(&self) -> u64 {
        self.caches.last().map_or(0, |cache| cache.bytes)
    }

    fn read_from(root: &Path) -> Self {
        let text = |path: &str| {
            bounded::read_text(root.join(path), bounded::TABLE_LIMIT).unwrap_or_default()
        };
        let cpuinfo = text("proc/cpuinfo");
        let values = |key: &str| {
            let lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
            lines
                .filter(|(name, _)| name.trim() == key)
                .map(|(_, value)| value.trim())
                .collect::<Vec<_>>()
        };
        let threads = values("processor").len().max(1);
        let (sockets, cores) = (values("physical id"), values("core id"));
        let each_core: BTreeSet<_> = sockets.iter().zip(&cores).collect();
        let flags = [values("flags"), values("Features")].concat();
        let flags: BTreeSet<_> = flags
            .first()
            .map(|flags| flags.split(' ').collect())
            .unwrap_or_default();
        Self {
            name: values("model name")
                .first()
                .copied()
                .unwrap_or("unknown CPU")
                .to_owned(),
            sockets: sockets.iter().collect::<BTreeSet<_>>().len().max(1),
            // If the kernel does not report cores, each thread counts as a core.
            cores: if each_core.is_empty() {
                threads
            } else {
                each_core.len()
            },
            threads,
            memory_bytes: parse_kib(&text("proc/meminfo"), "MemTotal:").unwrap_or(0) * 1024,
            caches: read_caches(&root.join("sys/devices/system/cpu")),
            features: FEATURES
                .into_iter()
                .filter(|feature| flags.contains(feature))
                .collect(),
        }
    }
}

/// Returns the caches by level. The kernel lists a cache for every CPU that shares it, but it is
/// counted once.
fn read_caches(folder: &Path) -> Vec<Cache> {
    let mut each = BTreeSet::new();
    for cpu in numbered_entries(folder, "cpu") {
        for cache in numbered_entries(&cpu.join("cache"), "index") {
            let text = |name| {
                bounded::read_text(cache.join(name), bounded::VALUE_LIMIT)
                    .unwrap_or_default()
                    .trim()
                    .to_owned()
            };
            let bytes = text("size")
                .strip_suffix('K')
                .and_then(|kib| kib.parse::<u64>().ok())
                .map(|kib| kib * 1024);
            if let (Ok(level), Some(bytes), true) = (
                text("level").parse::<u32>(),
                bytes,
                text("type") != "Instruction",
            ) {
                each.insert((level, text("shared_cpu_list"), bytes));
            }
        }
    }
    let levels: BTreeSet<u32> = each.iter().map(|(level, ..)| *level).collect();
    let of_level = |level| {
        each.iter()
            .filter(move |(of, ..)| *of == level)
            .map(|(.., bytes)| bytes)
            .sum()
    };
    levels
        .into_iter()
        .map(|level| Cache {
            level,
            bytes: of_level(level),
        })
        .collect()
}

/// Returns the entries of a directory whose names consist of `name` and a number.
fn numbered_entries(folder: &Path, name: &str) -> Vec<std::path::PathBuf> {
    let is_numbered = |path: &std::path::PathBuf| {
        let number = path
            .file_name()
            .and_then(|file| file.to_str()?.strip_prefix(name));
        number.is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
        })
    };
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(is_numbered)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_file(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn threads_share_cores_and_caches() {
        let root = tempfile::tempdir().unwrap();
        let thread = |number: u32, core: u32| {
            format!(
                "processor\t: {number}\nmodel name\t: Fast CPU\nphysical id\t: 0\ncore id\t: \
                 {core}\nflags\t: fma x avx2\n"
            )
        };
        write_file(
            root.path(),
            "proc/cpuinfo",
            &[thread(0, 0), thread(1, 0), thread(2, 1), thread(3, 1)].join("\n"),
        );
        write_file(root.path(), "proc/meminfo", "MemTotal:       16 kB\n");
        for (cpu, pair) in [(0, "0-1"), (1, "0-1"), (2, "2-3"), (3, "2-3")] {
            for (index, level, kind, shared, size) in [
                (0, 1, "Data", pair, "32K"),
                (1, 1, "Instruction", pair, "32K"),
                (3, 3, "Unified", "0-3", "8192K"),
            ] {
                let place = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
                for (name, text) in [
                    ("level", &*level.to_string()),
                    ("type", kind),
                    ("shared_cpu_list", shared),
                    ("size", size),
                ] {
                    write_file(
                        root.path(),
                        &format!("{place}/{name}"),
                        &format!("{text}\n"),
                    );
                }
            }
        }
        let cpu = Cpu::read_from(root.path());
        assert_eq!(
            (cpu.name.as_str(), cpu.sockets, cpu.cores, cpu.threads),
            ("Fast CPU", 1, 2, 4)
        );
        assert_eq!(
            cpu.caches,
            [
                Cache {
                    level: 1,
                    bytes: 64 << 10
                },
                Cache {
                    level: 3,
                    bytes: 8 << 20
                }
            ]
        );
        assert_eq!(
            (cpu.memory_bytes, cpu.features),
            (16 << 10, vec!["fma", "avx2"])
        );
    }

    #[test]
    fn machine_without_cpu_information_reports_one_thread() {
        let cpu = Cpu::read_from(Path::new("/nowhere"));
        assert_eq!((cpu.threads, cpu.cores, cpu.last_cache_bytes()), (1, 1, 0));
    }
}
