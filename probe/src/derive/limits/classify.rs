//! The classification of one window: how much of its time each cause limited the GPU.
//!
//! Time in which no kernel runs is attributed to copies, to the CPU, to input, or to nothing. Time
//! in which kernels run is attributed to the resource that is closest to its limit, then to the
//! next one, and the rest to latency. The share that reduced clocks cost is taken from the time in
//! which kernels run.

use crate::model::{Confidence, LimitClass};

/// The number of causes.
const COUNT: usize = LimitClass::ALL.len();

/// The highest tensor activity that large matrix products reach on H100 and H200, as a share of the
/// time.
const TENSOR_LIMIT: f64 = 0.92;

/// The highest activity of a floating-point or integer unit that programs reach.
const ARITHMETIC_LIMIT: f64 = 0.75;

/// The highest share of the peak bandwidth of device memory that copies and element-wise kernels
/// reach: 0.76 on an H200 in the decoding of a language model, 0.90 on an H100.
const DRAM_LIMIT: f64 = 0.8;

/// Below this share of the multiprocessors, the kernels that run are too small for the GPU.
const TINY_SM_SHARE: f64 = 0.15;

/// The rate of copies from pageable memory, which one CPU thread limits: at this rate, the copies
/// take all the time. Measured: 5.9 GB/s in a machine with an H200, 8.5 GB/s with an H100. On slow
/// links, a share of the link's rate is used.
const PAGEABLE_BYTES_PER_SECOND: f64 = 5.5e9;
const PAGEABLE_LINK_SHARE: f64 = 0.3;

/// If copies from pageable memory would take less than this share of the CPU time, the process may
/// as well compute, and copy from pinned memory.
const CERTAIN_COPY_SHARE: f64 = 0.7;

/// The share of a PCIe link's rate that large copies from pinned memory reach.
const PINNED_LINK_SHARE: f64 = 0.9;

/// A GPU without copies has PCIe traffic of up to 0.25 GB/s, because kernel launches are sent over
/// PCIe.
const LAUNCH_BYTES_PER_SECOND: f64 = 0.5e9;

/// Above this rate, disks may be what the processes that read from them wait for.
const READ_BYTES_PER_SECOND: f64 = 5e6;

/// Above this rate of the whole machine, disks or the network may be what a process waits for.
const MACHINE_BYTES_PER_SECOND: f64 = 30e6;

/// A GPU with more kernel time or PCIe traffic than this is in use. An idle GPU has up to 1 MB/s.
const MIN_USE: f64 = 0.001;
const MIN_USE_BYTES_PER_SECOND: f64 = 10e6;

/// The PCIe traffic of small copies in each second in which they run. They are sent with the
/// launches, so the multiprocessors do nothing. Launches of tiny kernels cause at most 0.9 GB.
const SMALL_COPY_BYTES: f64 = 2e9;
const SMALL_COPY_SM_SHARE: f64 = 0.002;

/// Child processes with a lower CPU use, in cores, do not delay the GPU.
const MIN_WORKERS: f64 = 0.3;

/// An owner with a smaller share of the multiprocessors' time does not disturb the others.
const MIN_OWNER_SHARE: f64 = 0.1;

/// The driver's shares of two owners with equal time slices differ by this factor.
const SLICE_TOLERANCE: f64 = 1.5;

/// If kernels run for a larger share of the time, small kernels wait inside of collectives. With a
/// smaller share, they are launched one by one.
const COLLECTIVE_SHARE: f64 = 0.9;

/// The averages of one window. Shares are from 0 to 1.
#[derive(Debug, Clone, Default)]
pub(super) struct Window {
    /// Share of time in which a kernel or a copy ran.
    pub(super) gpu: f64,
    /// The hardware counters, if the GPU has them.
    pub(super) activity: Option<Averages>,
    /// Data per second over PCIe, in the direction with more data.
    pub(super) pcie: Option<f64>,
    /// The rate of the PCIe link.
    pub(super) pcie_limit: Option<f64>,
    /// The current clock as a share of the maximum, if power or temperature reduce the clock.
    pub(super) reduced_clock: Option<f64>,
    /// The CPU use of the GPU's processes, if it is known.
    pub(super) cpu: Option<CpuShares>,
    pub(super) input: InputRates,
    /// The multiprocessor shares of the owners.
    pub(super) owners: Vec<f64>,
    /// Whether the GPUs of the job exchange data.
    pub(super) communicates: bool,
}

/// Rates in bytes per second, as far as they are known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InputRates {
    /// The rate at which the processes read from disks.
    pub(super) own: Option<f64>,
    /// The read rate of all disks.
    pub(super) disks: Option<f64>,
    /// The receive rate of all network cards.
    pub(super) network: Option<f64>,
}

/// The hardware counters of a window, as shares of the time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Averages {
    pub(super) graphics: f64,
    pub(super) sm: f64,
    pub(super) tensor: f64,
    /// The busiest of the units for single, double and half precision and for integers.
    pub(super) arithmetic: f64,
    pub(super) dram: f64,
}

impl Averages {
    fn scale(self, factor: f64) -> Self {
        Self {
            graphics: self.graphics * factor,
            sm: self.sm * factor,
            tensor: self.tensor * factor,
            arithmetic: self.arithmetic * factor,
            dram: self.dram * factor,
        }
    }
}

/// CPU use in cores.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CpuShares {
    /// The busiest process that uses the GPU.
    pub(super) process: f64,
    /// The child processes of these processes together.
    pub(super) workers: f64,
    /// Whether a process was waiting for a disk.
    pub(super) blocked: bool,
}

/// The share of each cause.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Shares {
    /// The shares, in the order of [`LimitClass::ALL`].
    by_cause: [f64; COUNT],
    /// The part of the share of copies in which the CPU may have computed instead.
    maybe_host: f64,
    /// Whether only the rates of the whole machine show that a process waits for input.
    input_by_machine: bool,
}

impl Shares {
    pub(super) fn get(&self, class: LimitClass) -> f64 {
        self.by_cause[class as usize]
    }

    fn add(&mut self, class: LimitClass, share: f64) {
        self.by_cause[class as usize] += share;
    }

    fn move_share(&mut self, from: LimitClass, to: LimitClass, share: f64) {
        self.add(from, -share);
        self.add(to, share);
    }

    /// Returns the cause with the largest share, and how clearly it leads.
    pub(super) fn find_main_cause(&self) -> (LimitClass, Confidence) {
        let mut order = LimitClass::ALL;
        order.sort_by(|one, other| self.get(*other).total_cmp(&self.get(*one)));
        let main = order[0];
        let lead = self.get(main) - self.get(order[1]);
        let confidence = Confidence::from_lead(lead * 100.0);
        let is_doubtful = main == LimitClass::Transfer && self.maybe_host * 2.0 > self.get(main);
        let most = match main {
            LimitClass::Transfer if is_doubtful => Confidence::Low,
            LimitClass::Input if self.input_by_machine => Confidence::Medium,
            _ => Confidence::High,
        };
        (main, confidence.min(most))
    }
}

/// Returns the shares of the window's time, which sum to 1.
pub(super) fn classify_window(window: &Window) -> Shares {
    let mut shares = Shares::default();
    let busy = kernel_share(window);
    let idle = 1.0 - busy;
    let is_tiny = window
        .activity
        .is_some_and(|activity| busy > 0.03 && activity.sm < busy * TINY_SM_SHARE);
    let is_collective = window.communicates && !(is_tiny && busy < COLLECTIVE_SHARE);
    let has_small_copies = has_small_copies(window);
    let copies = find_copies(window, busy);
    let copying = idle.min(copies.share);
    shares.maybe_host = copying.min(copies.maybe_host);
    let waiting = idle - copying;
    shares.add(LimitClass::Transfer, copying);
    let computing = waiting * cpu_share(window, busy, copying);
    shares.add(
        if has_small_copies {
            LimitClass::Transfer
        } else if is_tiny && !is_collective {
            LimitClass::Latency
        } else {
            LimitClass::Host
        },
        computing,
    );
    let own_input = has_own_input(window, busy);
    let rest = if own_input || has_machine_input(window, busy) {
        LimitClass::Input
    } else {
        LimitClass::Idle
    };
    shares.input_by_machine = !own_input;
    shares.add(rest, waiting - computing);
    if has_small_copies {
        shares.add(LimitClass::Transfer, busy);
    } else {
        add_kernel_time(&mut shares, window, busy, is_collective);
    }
    shares
}

/// Returns the part of a window that belongs to one of several owners. `window` contains the shares
/// of all owners, and the CPU use and reads of this owner, whose index is `number`. The hardware
/// counters do not distinguish the owners, so the kernels of all owners are assumed to be alike.
pub(super) fn select_owner(window: &Window, number: usize) -> Window {
    let all: f64 = window.owners.iter().sum();
    let own = window.owners[number];
    let part = if all > 0.0 { own / all } else { 0.0 };
    Window {
        gpu: own.min(window.gpu),
        activity: window.activity.map(|activity| activity.scale(part)),
        ..window.clone()
    }
}

/// Returns the share of time in which one of several owners waits for its turn, because kernels of
/// others run. The driver gives all owners equal time slices, so this takes about as long as its
/// own kernels for each of them. `owner` is the part of `window` that belongs to the owner with the
/// index `number`.
fn turn_share(window: &Window, owner: &Window, number: usize) -> f64 {
    let mut other_shares = window.owners.clone();
    other_shares.remove(number);
    let busy = kernel_share(owner);
    let others = (kernel_share(window) - busy).max(0.0);
    let slices = busy * SLICE_TOLERANCE * f64::from(count_active_owners(&other_shares));
    others.min(slices)
}

/// Returns the CPU time of an owner, in cores, that is left after its own kernels and after its
/// waiting for its turn, in which the process spins or sleeps.
pub(super) fn remaining_cpu(window: &Window, owner: &Window, number: usize) -> f64 {
    let process = owner.cpu.map_or(0.0, |cpu| cpu.process);
    process - kernel_share(owner) - turn_share(window, owner, number)
}

/// Returns the shares for one of several owners. `owner` is the part of `window` that belongs to
/// the owner with the index `number`.
pub(super) fn classify_owner(window: &Window, owner: &Window, number: usize) -> Shares {
    let turn = turn_share(window, owner, number);
    let mut alone = Window {
        owners: Vec::new(),
        ..owner.clone()
    };
    if let Some(cpu) = &mut alone.cpu {
        cpu.process -= turn.min((cpu.process - kernel_share(owner)).max(0.0));
    }
    let mut shares = classify_window(&alone);
    let moved = turn.min(shares.get(LimitClass::Idle));
    shares.move_share(LimitClass::Idle, LimitClass::Shared, moved);
    shares
}

/// Returns the share of time in which kernels run. Without hardware counters, this is the time in
/// which kernels or copies run, less the shortest time that the copies can have taken.
fn kernel_share(window: &Window) -> f64 {
    let share = match window.activity {
        Some(activity) => activity.graphics,
        None => window.gpu - pinned_copy_share(window),
    };
    share.clamp(0.0, 1.0)
}

/// Returns the share of time that the copies take if all memory is pinned, by the link's rate.
fn pinned_copy_share(window: &Window) -> f64 {
    let rate = window.pcie.filter(|rate| *rate > LAUNCH_BYTES_PER_SECOND);
    rate.zip(window.pcie_limit)
        .map_or(0.0, |(rate, limit)| rate / (limit * PINNED_LINK_SHARE))
}

/// Returns `true` if the kernels that seem to run are copies of a few kilobytes.
pub(super) fn has_small_copies(window: &Window) -> bool {
    window
        .activity
        .zip(window.pcie)
        .is_some_and(|(activity, pcie)| are_copies_small(activity.graphics, activity.sm, pcie))
}

/// Returns `true` if the kernels that seem to run are copies of a few kilobytes. `kernels` is the
/// share of time in which kernels run, `sm` that in which a multiprocessor has work, and `pcie` the
/// data per second over PCIe.
pub fn are_copies_small(kernels: f64, sm: f64, pcie: f64) -> bool {
    kernels > 0.03 && sm < SMALL_COPY_SM_SHARE * kernels && pcie > SMALL_COPY_BYTES * kernels
}

/// The time in which copies run and no kernel.
struct Copies {
    share: f64,
    /// The part of the share in which the CPU may have computed instead, because it is not known
    /// whether the memory is pinned.
    maybe_host: f64,
}

fn find_copies(window: &Window, busy: f64) -> Copies {
    let Some(rate) = window.pcie.filter(|rate| *rate > LAUNCH_BYTES_PER_SECOND) else {
        return Copies {
            share: 0.0,
            maybe_host: 0.0,
        };
    };
    let limit = window
        .pcie_limit
        .map_or(PAGEABLE_BYTES_PER_SECOND, |limit| {
            PAGEABLE_BYTES_PER_SECOND.min(limit * PAGEABLE_LINK_SHARE)
        });
    // The process itself copies pageable memory, so this takes at most its CPU time.
    let most = window.cpu.map_or(1.0, |cpu| (cpu.process - busy).max(0.0));
    let pageable = (rate / limit).min(most);
    let certain = (window.gpu - busy).clamp(0.0, 1.0);
    let share = certain.max(pageable).min(1.0);
    let maybe_host = if pageable < CERTAIN_COPY_SHARE * most.min(1.0) && window.cpu.is_some() {
        share - certain
    } else {
        0.0
    };
    Copies { share, maybe_host }
}

/// Returns the share of the waiting time in which the CPU computes.
///
/// A process that waits for the GPU spins, so its CPU use contains the time in which kernels and
/// copies run. If the CPU use is lower than that, the process sleeps instead.
fn cpu_share(window: &Window, busy: f64, copying: f64) -> f64 {
    let waiting = 1.0 - busy - copying;
    let Some(cpu) = window.cpu.filter(|_| waiting > 0.01) else {
        return 0.0;
    };
    let own = own_cpu_share(&cpu, busy + copying, copying > 0.0);
    own.max(worker_share(&cpu)).clamp(0.0, 1.0)
}

/// Returns the share of the waiting time in which the process itself computes. `working` is the
/// share of time in which kernels and copies run.
fn own_cpu_share(cpu: &CpuShares, working: f64, copies: bool) -> f64 {
    let waiting = 1.0 - working;
    if cpu.process >= working * 0.95 {
        (cpu.process - working).max(0.0) / waiting
    } else if copies {
        0.0
    } else {
        cpu.process / waiting
    }
}

/// Returns the share of the waiting time in which child processes compute, or 0 if they hardly use
/// the CPU.
fn worker_share(cpu: &CpuShares) -> f64 {
    if cpu.workers >= MIN_WORKERS {
        cpu.workers
    } else {
        0.0
    }
}

/// Returns `true` if child processes compute for more of the waiting time than the process itself.
pub(super) fn do_workers_decide(window: &Window) -> bool {
    let busy = kernel_share(window).min(0.99);
    window
        .cpu
        .is_some_and(|cpu| worker_share(&cpu) > own_cpu_share(&cpu, busy, false))
}

/// Returns `true` if the GPU is in use.
fn is_in_use(window: &Window, busy: f64) -> bool {
    busy > MIN_USE
        || window
            .pcie
            .is_some_and(|rate| rate > MIN_USE_BYTES_PER_SECOND)
}

/// Returns `true` if the GPU's own processes wait for a disk, or read from one. A program that has
/// not used the GPU yet loads its data at a high rate.
fn has_own_input(window: &Window, busy: f64) -> bool {
    let limit = if is_in_use(window, busy) {
        READ_BYTES_PER_SECOND
    } else {
        MACHINE_BYTES_PER_SECOND
    };
    window.cpu.is_some_and(|cpu| cpu.blocked) || window.input.own.is_some_and(|rate| rate > limit)
}

/// Returns `true` if a program of the machine reads from disks or from the network, which may be
/// the GPU's program. A program that is known not to read from disks can only wait for the network.
fn has_machine_input(window: &Window, busy: f64) -> bool {
    let InputRates {
        own,
        disks,
        network,
    } = window.input;
    let disks = disks.filter(|_| own.is_none());
    let is_fast = |rate: Option<f64>| rate.is_some_and(|rate| rate > MACHINE_BYTES_PER_SECOND);
    is_in_use(window, busy) && (is_fast(disks) || is_fast(network))
}

/// Attributes the time in which kernels run.
fn add_kernel_time(shares: &mut Shares, window: &Window, busy: f64, is_collective: bool) {
    let alone = 1.0 / concurrent_owners(&window.owners);
    shares.add(LimitClass::Shared, busy * (1.0 - alone));
    let clock = window.reduced_clock.unwrap_or(1.0).clamp(0.0, 1.0);
    shares.add(LimitClass::Power, busy * alone * (1.0 - clock));
    let scale = alone * clock;
    let Some(activity) = window.activity else {
        shares.add(LimitClass::Unknown, busy * scale);
        return;
    };
    let mut resources = [
        (LimitClass::Tensor, activity.tensor / TENSOR_LIMIT),
        (LimitClass::Compute, activity.arithmetic / ARITHMETIC_LIMIT),
        (LimitClass::Memory, activity.dram / DRAM_LIMIT),
    ];
    resources.sort_by(|one, other| other.1.total_cmp(&one.1));
    let mut rest = busy;
    for (class, share) in resources {
        let limited = share.clamp(0.0, rest);
        shares.add(class, limited * scale);
        rest -= limited;
    }
    let class = if is_collective {
        LimitClass::Communication
    } else {
        LimitClass::Latency
    };
    shares.add(class, rest * scale);
}

/// Returns the number of owners that use the multiprocessors.
pub(super) fn count_active_owners(shares: &[f64]) -> u32 {
    list_active_shares(shares).count() as u32
}

fn list_active_shares(shares: &[f64]) -> impl Iterator<Item = f64> {
    let active = shares.iter().copied();
    active.filter(|share| *share >= MIN_OWNER_SHARE)
}

/// Returns the effective number of owners that use the multiprocessors: 2 for two owners with equal
/// shares, and close to 1 if one of them hardly uses the GPU.
fn concurrent_owners(shares: &[f64]) -> f64 {
    let squares: f64 = list_active_shares(shares).map(|share| share * share).sum();
    let sum: f64 = list_active_shares(shares).sum();
    if squares > 0.0 {
        sum * sum / squares
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program: its name, GPU utilization, counters, PCIe rate in GB/s, CPU use, and main cause.
    type Program = (&'static str, f64, [f64; 5], f64, [f64; 2], LimitClass);

    use LimitClass::{Compute, Host, Idle, Latency, Memory, Tensor, Transfer};

    /// Readings of PyTorch programs on one H200, driver 580.159.04: utilization; graphics, SM,
    /// tensor, arithmetic and DRAM activity; PCIe rate in GB/s; CPU use of the process and of its
    /// children.
    const PROGRAMS: [Program; 22] = [
        ("memory held", 0.0, [0.0; 5], 0.0, [0.0, 0.0], Idle),
        (
            "GEMM bf16",
            1.0,
            [1.0, 0.961, 0.933, 0.014, 0.161],
            0.01,
            [1.0, 0.0],
            Tensor,
        ),
        (
            "GEMM fp32",
            1.0,
            [1.0, 0.967, 0.0, 0.766, 0.047],
            0.0,
            [1.0, 0.0],
            Compute,
        ),
        (
            "GEMM fp64",
            1.0,
            [1.0, 0.984, 0.97, 0.064, 0.105],
            0.01,
            [1.0, 0.0],
            Tensor,
        ),
        (
            "training fp32",
            0.98,
            [0.98, 0.947, 0.0, 0.738, 0.05],
            0.01,
            [0.94, 0.0],
            Compute,
        ),
        (
            "training bf16",
            0.99,
            [0.99, 0.962, 0.836, 0.037, 0.239],
            0.02,
            [0.98, 0.0],
            Tensor,
        ),
        (
            "element-wise",
            0.99,
            [0.99, 0.982, 0.0, 0.043, 0.867],
            0.02,
            [1.0, 0.0],
            Memory,
        ),
        (
            "decode",
            0.97,
            [0.97, 0.79, 0.03, 0.024, 0.765],
            0.12,
            [1.0, 0.0],
            Memory,
        ),
        (
            "tiny kernels",
            0.27,
            [0.27, 0.0003, 0.0, 0.0, 0.0],
            0.22,
            [1.0, 0.0],
            Latency,
        ),
        (
            "tiny kernels without Python",
            0.43,
            [0.43, 0.0003, 0.0, 0.0, 0.0],
            0.36,
            [1.23, 0.0],
            Latency,
        ),
        (
            "tiny, synchronized",
            0.13,
            [0.13, 0.0002, 0.0, 0.0, 0.0],
            0.11,
            [1.0, 0.0],
            Latency,
        ),
        (
            "small training",
            0.14,
            [0.14, 0.0145, 0.0, 0.002, 0.0],
            0.07,
            [0.98, 0.0],
            Latency,
        ),
        (
            "pageable copies",
            0.12,
            [0.0; 5],
            5.93,
            [1.0, 0.0],
            Transfer,
        ),
        (
            "pinned copies",
            1.0,
            [0.0, 0.0, 0.0, 0.0, 0.011],
            57.4,
            [1.0, 0.0],
            Transfer,
        ),
        (
            "copies to the host",
            1.0,
            [0.0, 0.0, 0.0, 0.0, 0.011],
            59.9,
            [1.0, 0.0],
            Transfer,
        ),
        (
            "copies of 4 KiB",
            0.13,
            [0.13, 0.0, 0.0, 0.0, 0.0],
            0.45,
            [1.0, 0.0],
            Transfer,
        ),
        (
            "NumPy batches",
            0.2,
            [0.21, 0.198, 0.0, 0.154, 0.01],
            0.24,
            [1.0, 0.0],
            Host,
        ),
        ("CPU only", 0.0, [0.0; 5], 0.0, [1.0, 0.0], Host),
        (
            "slow loader",
            0.03,
            [0.02, 0.022, 0.003, 0.01, 0.012],
            0.28,
            [0.13, 2.0],
            Host,
        ),
        (
            "serving",
            0.81,
            [0.81, 0.634, 0.041, 0.019, 0.614],
            0.14,
            [0.84, 0.0],
            Memory,
        ),
        (
            "gather",
            0.99,
            [0.99, 0.988, 0.004, 0.107, 0.538],
            0.03,
            [1.0, 0.0],
            Memory,
        ),
        (
            "double-precision sine",
            0.98,
            [0.98, 0.965, 0.0, 0.298, 0.821],
            0.03,
            [1.0, 0.0],
            Memory,
        ),
    ];

    fn make_window(program: &Program) -> Window {
        let (_, gpu, counters, pcie_gb, cpu, _) = *program;
        let [graphics, sm, tensor, arithmetic, dram] = counters;
        Window {
            gpu,
            activity: Some(Averages {
                graphics,
                sm,
                tensor,
                arithmetic,
                dram,
            }),
            pcie: Some(pcie_gb * 1e9),
            pcie_limit: Some(63e9),
            cpu: Some(CpuShares {
                process: cpu[0],
                workers: cpu[1],
                blocked: false,
            }),
            ..Window::default()
        }
    }

    #[test]
    fn programs_with_known_limits_are_classified() {
        for program in &PROGRAMS {
            let shares = classify_window(&make_window(program));
            let sum: f64 = shares.by_cause.iter().sum();
            assert!((sum - 1.0).abs() < 1e-9, "{}: {sum}", program.0);
            assert_eq!(
                shares.find_main_cause().0,
                program.5,
                "{}: {shares:?}",
                program.0
            );
            assert!(shares.get(program.5) > 0.5, "{}: {shares:?}", program.0);
        }
    }

    #[test]
    fn reduced_clocks_take_their_share() {
        let mut capped = make_window(&PROGRAMS[1]);
        capped.reduced_clock = Some(0.74);
        let shares = classify_window(&capped);
        assert!((shares.get(LimitClass::Power) - 0.26).abs() < 1e-9);
        assert!((shares.get(Tensor) - 0.74).abs() < 1e-9);
        assert_eq!(shares.find_main_cause(), (Tensor, Confidence::High));
    }

    #[test]
    fn process_that_waits_for_disk_is_input_bound() {
        let mut disk = Window {
            gpu: 0.07,
            activity: Some(Averages {
                graphics: 0.04,
                sm: 0.042,
                arithmetic: 0.033,
                ..Averages::default()
            }),
            pcie: Some(1.17e9),
            pcie_limit: Some(63e9),
            cpu: Some(CpuShares {
                process: 0.33,
                ..CpuShares::default()
            }),
            input: InputRates {
                own: Some(1.1e9),
                ..InputRates::default()
            },
            ..Window::default()
        };
        assert_eq!(
            classify_window(&disk).find_main_cause(),
            (LimitClass::Input, Confidence::High)
        );
        disk.input = InputRates {
            disks: Some(1.1e9),
            ..InputRates::default()
        };
        assert_eq!(
            classify_window(&disk).find_main_cause(),
            (LimitClass::Input, Confidence::Medium),
            "the process may not be read"
        );
        disk.input.own = Some(0.0);
        assert_eq!(
            classify_window(&disk).find_main_cause().0,
            Idle,
            "another program reads the disk"
        );
        let mut idle = make_window(&PROGRAMS[0]);
        idle.input.disks = Some(1.1e9);
        assert_eq!(
            classify_window(&idle).find_main_cause().0,
            Idle,
            "another program reads the disk"
        );
    }

    #[test]
    fn two_equal_owners_share_half_the_time() {
        let mut two = make_window(&PROGRAMS[1]);
        two.owners = vec![0.49, 0.49];
        let shares = classify_window(&two);
        assert!((shares.get(LimitClass::Shared) - 0.5).abs() < 1e-9);
        two.owners = vec![0.98, 0.01];
        assert!(classify_window(&two).get(LimitClass::Shared) < 1e-9);
    }

    #[test]
    fn waiting_kernels_on_several_gpus_communicate() {
        let mut waiting = make_window(&PROGRAMS[0]);
        waiting.gpu = 1.0;
        waiting.activity = Some(Averages {
            graphics: 1.0,
            sm: 0.18,
            ..Averages::default()
        });
        waiting.cpu = Some(CpuShares {
            process: 1.0,
            ..CpuShares::default()
        });
        assert_eq!(classify_window(&waiting).find_main_cause().0, Latency);
        waiting.communicates = true;
        assert_eq!(
            classify_window(&waiting).find_main_cause(),
            (LimitClass::Communication, Confidence::High)
        );
    }

    #[test]
    fn busier_workers_decide() {
        let mut loader = make_window(&PROGRAMS[18]);
        assert_eq!(PROGRAMS[18].0, "slow loader");
        assert!(do_workers_decide(&loader));
        loader.cpu = Some(CpuShares {
            process: 1.0,
            workers: 0.12,
            blocked: false,
        });
        assert!(!do_workers_decide(&loader));
    }

    #[test]
    fn pinned_copies_take_little_time() {
        let mut pinned = make_window(&PROGRAMS[18]);
        pinned.gpu = 0.45;
        pinned.activity = Some(Averages {
            graphics: 0.4,
            sm: 0.38,
            tensor: 0.3,
            ..Averages::default()
        });
        pinned.pcie = Some(2e9);
        pinned.cpu = Some(CpuShares {
            process: 0.45,
            workers: 4.0,
            blocked: false,
        });
        let shares = classify_window(&pinned);
        assert!(shares.get(Transfer) < 0.06, "{shares:?}");
        assert_eq!(shares.find_main_cause().0, Host);
    }

    #[test]
    fn copies_of_process_that_computes_are_doubtful() {
        let mut copies = make_window(&PROGRAMS[12]);
        assert_eq!(PROGRAMS[12].0, "pageable copies");
        assert_eq!(
            classify_window(&copies).find_main_cause(),
            (Transfer, Confidence::High)
        );
        let mut next_to_kernels = copies.clone();
        next_to_kernels.gpu = 0.45;
        next_to_kernels.activity = Some(Averages {
            graphics: 0.4,
            sm: 0.38,
            tensor: 0.38,
            ..Averages::default()
        });
        next_to_kernels.pcie = Some(3.3e9);
        let (main, confidence) = classify_window(&next_to_kernels).find_main_cause();
        assert_eq!((main, confidence), (Transfer, Confidence::Medium));
        copies.pcie = Some(2e9);
        assert_eq!(classify_window(&copies).find_main_cause().0, Host);
        copies.pcie = Some(3.5e9);
        assert_eq!(
            classify_window(&copies).find_main_cause(),
            (Transfer, Confidence::Low)
        );
    }

    #[test]
    fn small_kernels_between_collectives_are_latency() {
        let mut small = make_window(&PROGRAMS[11]);
        assert_eq!(PROGRAMS[11].0, "small training");
        small.communicates = true;
        assert_eq!(classify_window(&small).find_main_cause().0, Latency);
    }

    #[test]
    fn each_owner_has_its_own_causes() {
        let mut two = make_window(&PROGRAMS[1]);
        two.owners = vec![0.49, 0.49];
        let classify =
            |two: &Window, number| classify_owner(two, &select_owner(two, number), number);
        two.pcie = Some(2.3e9);
        assert!(classify(&two, 0).get(Transfer) < 0.05);
        two.pcie = Some(0.0);
        let spinning = classify(&two, 0);
        let sum: f64 = spinning.by_cause.iter().sum();
        assert!((sum - 1.0).abs() < 1e-9, "{spinning:?}");
        assert!((spinning.get(LimitClass::Shared) - 0.5).abs() < 1e-9);
        assert!((spinning.get(Tensor) - 0.5).abs() < 1e-9);
        two.owners = vec![0.88, 0.1];
        let computing = classify(&two, 1);
        assert_eq!(computing.find_main_cause().0, Host, "{computing:?}");
        two.owners = vec![0.98, 0.0];
        let without_kernels = classify(&two, 1);
        assert!(
            (without_kernels.get(Host) - 1.0).abs() < 1e-9,
            "{without_kernels:?}"
        );
        two.owners = vec![0.49, 0.49];
        two.cpu = Some(CpuShares {
            process: 0.6,
            workers: 4.0,
            blocked: false,
        });
        let loading = classify(&two, 1);
        assert!((loading.get(Host) - 0.5).abs() < 1e-9, "{loading:?}");
        two.cpu = Some(CpuShares {
            process: 0.1,
            ..CpuShares::default()
        });
        let sleeping = classify(&two, 1);
        assert!(
            (sleeping.get(LimitClass::Shared) - 0.4).abs() < 1e-9,
            "{sleeping:?}"
        );
    }

    #[test]
    fn copies_without_counters_are_found_by_their_rate() {
        let mut old = make_window(&PROGRAMS[13]);
        assert_eq!(PROGRAMS[13].0, "pinned copies");
        old.activity = None;
        let shares = classify_window(&old);
        assert!(shares.get(Transfer) > 0.99, "{shares:?}");
    }

    #[test]
    fn equal_owners_are_counted() {
        assert_eq!(count_active_owners(&[0.2, 0.2, 0.2, 0.01]), 3);
    }

    #[test]
    fn without_counters_running_kernels_are_not_classified() {
        let mut old = make_window(&PROGRAMS[1]);
        old.activity = None;
        old.reduced_clock = Some(0.8);
        let shares = classify_window(&old);
        assert!((shares.get(LimitClass::Unknown) - 0.8).abs() < 1e-9);
        assert!((shares.get(LimitClass::Power) - 0.2).abs() < 1e-9);
    }
}
