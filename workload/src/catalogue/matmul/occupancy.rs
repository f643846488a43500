//! The reference page about kernels: which kernel multiplies on which GPU, and how much of a
//! multiprocessor it uses. The numbers come from the registers that `tools/kernels.py` lists, so
//! the GPUs themselves are not needed.

use std::{env, fmt::Write, fs, path::Path};

use super::kernel_select::{KernelChoice, candidates, needs};
use crate::{
    cuda::Code,
    protocol::{Dtype, Dtype::*},
};

const TYPES: [Dtype; 7] = [Fp64, Fp32, Tf32, Fp16, Bf16, Fp8, Int8];
/// The registers of a multiprocessor since Pascal, and the number of registers that are allocated
/// to a warp at a time.
const REGISTERS: u32 = 64 << 10;
const REGISTERS_AT_ONCE: u32 = 256;
/// The shared memory of each block that the driver reserves.
const RESERVED_BYTES: u32 = 1 << 10;

/// An architecture, as in the table of compute capabilities in NVIDIA's programming guide.
struct Architecture {
    name: &'static str,
    of: &'static str,
    capability: (u32, u32),
    threads: u32,
    shared_kib: u32,
    shared_of_block_kib: u32,
}

const ARCHITECTURES: [Architecture; 5] = [
    Architecture {
        name: "sm_80",
        of: "Ampere: A100, A30",
        capability: (8, 0),
        threads: 2048,
        shared_kib: 164,
        shared_of_block_kib: 163,
    },
    Architecture {
        name: "sm_89",
        of: "Ada: L4, L40S, RTX 40",
        capability: (8, 9),
        threads: 1536,
        shared_kib: 100,
        shared_of_block_kib: 99,
    },
    Architecture {
        name: "sm_90a",
        of: "Hopper: H100, H200, GH200",
        capability: (9, 0),
        threads: 2048,
        shared_kib: 228,
        shared_of_block_kib: 227,
    },
    Architecture {
        name: "sm_100a",
        of: "Blackwell: B200, GB200",
        capability: (10, 0),
        threads: 2048,
        shared_kib: 228,
        shared_of_block_kib: 227,
    },
    Architecture {
        name: "sm_120",
        of: "Blackwell: RTX PRO 6000, RTX 50",
        capability: (12, 0),
        threads: 1536,
        shared_kib: 100,
        shared_of_block_kib: 99,
    },
];

/// Returns the shared memory that the code of a kernel declares, and its registers per thread on an
/// architecture, from the listing. The listing has no number of registers if some are spilled.
fn listed(kernel: &str, architecture: &str) -> (u32, u32) {
    let listing = include_str!("../../../kernels/listing.txt");
    let heads = listing
        .lines()
        .find(|line| line.starts_with("kernel "))
        .unwrap();
    let column = heads
        .split_whitespace()
        .position(|head| head == architecture)
        .unwrap();
    let row = listing
        .lines()
        .find(|line| line.split_whitespace().next() == Some(kernel))
        .unwrap();
    let cells: Vec<_> = row.split_whitespace().collect();
    let registers = cells[column].parse();
    (
        cells[1].parse().unwrap(),
        registers.unwrap_or_else(|_| panic!("{kernel} spills on {architecture}: {row}")),
    )
}

impl Architecture {
    /// Returns the number of blocks of a kernel that fit on a multiprocessor.
    fn blocks(&self, choice: &KernelChoice, registers: u32, shared_bytes: u32) -> u32 {
        let of_warp = (registers * 32).next_multiple_of(REGISTERS_AT_ONCE);
        let by_registers = REGISTERS / (of_warp * choice.threads.div_ceil(32));
        let by_shared_memory = (self.shared_kib << 10) / (shared_bytes + RESERVED_BYTES);
        by_registers
            .min(by_shared_memory)
            .min(self.threads / choice.threads)
    }
}

fn page() -> String {
    let mut page = "# Kernels of matmul\n\nMade by `make types`. Which kernels `gpumon bench matmul` and `gpumon burn` \
        choose from, by the size of the matrices, on which GPU. Code is PTX, which the driver compiles, or machine code; \
        registers are those of a thread as `ptxas` 12.9 assembles it, none is spilled. Occupancy is the share of a \
        multiprocessor's threads that find room. What ran, and what it took by the driver's own count, is `kernel` in the \
        result of `--json`.\n"
        .to_owned();
    for architecture in &ARCHITECTURES {
        write!(page, "\n## {} ({})\n\n", architecture.name, architecture.of).unwrap();
        page +=
            "| type | kernel | code | threads | registers | shared KiB | blocks | occupancy |\n";
        page += "|---|---|---|---|---|---|---|---|\n";
        for dtype in TYPES
            .into_iter()
            .filter(|dtype| needs(*dtype) <= architecture.capability)
        {
            for choice in candidates(dtype, architecture.capability) {
                let (named_bytes, registers) = listed(&choice.kernel, architecture.name);
                let shared_bytes = choice.shared_bytes + named_bytes;
                let kernel = &choice.kernel;
                assert!(
                    shared_bytes <= architecture.shared_of_block_kib << 10,
                    "{kernel} on {}",
                    architecture.name
                );
                let blocks = architecture.blocks(&choice, registers, shared_bytes);
                assert!(
                    blocks > 0,
                    "{kernel} finds no room on {}",
                    architecture.name
                );
                let code = if matches!(choice.code, Code::Ptx(_)) {
                    "PTX"
                } else {
                    "machine code"
                };
                let percent = 100 * blocks * choice.threads / architecture.threads;
                let (threads, kib) = (choice.threads, shared_bytes.div_ceil(1 << 10));
                writeln!(
                    page,
                    "| {dtype} | `{kernel}` | {code} | {threads} | {registers} | {kib} | {blocks} | {percent} % |"
                )
                .unwrap();
            }
        }
    }
    page
}

#[test]
fn the_reference_page_has_every_kernel_and_none_spills() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/matmul-kernels.md");
    if env::var_os("GPUMON_UPDATE_TYPES").is_some() {
        fs::write(file, page()).unwrap();
        return;
    }
    let committed = fs::read_to_string(file).unwrap_or_default();
    assert!(
        committed == page(),
        "docs/reference/matmul-kernels.md is out of date: run `make types`"
    );
}
