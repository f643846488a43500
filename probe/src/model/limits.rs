//! The causes that limit the work of a GPU: shares of a window of time, the numbers that decided,
//! and advice.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::Reading;

/// How clearly the readings show the main cause.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, TS, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Another cause has almost the same share, or the readings do not distinguish two causes.
    Low,
    /// The main cause leads by at least 10 percentage points.
    Medium,
    /// The main cause leads by at least 30 percentage points.
    High,
}

impl Confidence {
    /// Returns the confidence for a lead of the main cause in percentage points.
    pub(crate) fn from_lead(points: f64) -> Self {
        match points {
            30.0.. => Self::High,
            10.0.. => Self::Medium,
            _ => Self::Low,
        }
    }
}

/// Defines a cause by its name in JSON, its share in [`Limits`], its label and its meaning.
macro_rules! limits {
    ($($class:ident $name:literal $field:ident $label:literal $meaning:literal;)+) => {
        /// A cause that limits the work of a GPU for a part of the time.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, TS,
            JsonSchema,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum LimitClass {
            $(#[doc = $meaning] $class,)+
        }

        /// The causes that limited the work of a GPU in the latest window of one to ten seconds.
        /// Their shares sum to 100. A GPU without the hardware counters of GPM (before Hopper)
        /// reports the causes that need these counters as not supported, and the time in which
        /// kernels run as `unknown_percent`.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
        pub struct Limits {
            /// The length of the window.
            pub window_ms: u64,
            $(#[doc = $meaning] pub $field: Reading<f64>,)+
            /// The cause with the largest share.
            pub main: LimitClass,
            /// How clearly the readings show the main cause.
            pub confidence: Confidence,
            /// The numbers that decided.
            pub evidence: LimitEvidence,
            /// The evidence for the main cause, as a sentence.
            pub text: String,
            /// The advice about the main cause, as a sentence; empty if there is none, or if the
            /// confidence is low.
            pub advice: String,
            /// The causes that limited each owner, if processes of several owners used the GPU.
            #[serde(default, skip_serializing_if = "Vec::is_empty")]
            pub owners: Vec<OwnerLimits>,
        }

        impl LimitClass {
            /// All causes, in display order.
            pub const ALL: [Self; 12] = [$(Self::$class),+];

            /// Returns the name in JSON, in alert rules and in metrics.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$class => $name,)+
                }
            }

            /// Returns the name of the cause, as a heading.
            pub const fn label(self) -> &'static str {
                match self {
                    $(Self::$class => $label,)+
                }
            }

            /// Returns what the cause means, as a sentence.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$class => $meaning,)+
                }
            }
        }

        impl Limits {
            /// Returns the share of a cause, in percent.
            pub fn get_share(&self, class: LimitClass) -> &Reading<f64> {
                match class {
                    $(LimitClass::$class => &self.$field,)+
                }
            }

            /// Creates limits from the share of each cause in [`LimitClass::ALL`], in percent.
            pub fn new(
                window_ms: u64,
                shares: [Reading<f64>; LimitClass::ALL.len()],
                main: LimitClass,
                confidence: Confidence,
                evidence: LimitEvidence,
            ) -> Self {
                let [$($field),+] = shares;
                let (text, advice) = (String::new(), String::new());
                let owners = Vec::new();
                let mut limits = Self {
                    window_ms, $($field,)+ main, confidence, evidence, text, advice, owners,
                };
                limits.describe();
                limits
            }
        }
    };
}

limits! {
    Idle "idle" idle_percent "Idle"
        "Nothing runs, and no process prepares work.";
    Host "host" host_percent "Host-bound"
        "The GPU waits while processes compute on the CPU.";
    Input "input" input_percent "Input-bound"
        "The GPU waits while processes wait for a disk or the network.";
    Transfer "transfer" transfer_percent "Transfer-bound"
        "The GPU waits for copies over PCIe.";
    Communication "communication" communication_percent "Communication-bound"
        "Kernels wait for, or exchange data with, other GPUs of the same job.";
    Memory "memory" memory_percent "Memory-bound"
        "Kernels use most of the bandwidth of device memory.";
    Tensor "tensor" tensor_percent "Tensor-bound"
        "Kernels keep the tensor cores busy.";
    Compute "compute" compute_percent "Compute-bound"
        "Kernels keep the floating-point or integer units busy, without tensor cores.";
    Latency "latency" latency_percent "Latency-bound"
        "Kernels are too small, or depend on each other too closely, to fill the GPU.";
    Power "power" power_percent "Power-limited"
        "The clocks are reduced by the power limit or the temperature.";
    Shared "shared" shared_percent "Shared"
        "Processes of another owner use the multiprocessors.";
    Unknown "unknown" unknown_percent "Not distinguishable"
        "Kernels run, but the GPU has no counters that show what limits them.";
}

/// The causes that limited one of several owners that used a GPU at the same time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct OwnerLimits {
    /// The owner's processes. Processes of one notebook or job have one owner.
    pub pids: Vec<u32>,
    /// The causes. The hardware counters do not distinguish owners, so kernels of all owners are
    /// assumed to be alike, and the counters in `evidence` are those of the whole GPU.
    pub limits: LimitSummary,
}

/// The numbers that decided what limits a GPU: averages over the window. A number that was not
/// needed or could not be read is omitted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(default)]
#[ts(optional_fields)]
pub struct LimitEvidence {
    /// Share of time in which a kernel or a copy ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_percent: Option<f64>,
    /// CPU use of the busiest process that uses the GPU; 100 is one core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<f64>,
    /// The number of its child processes that compute, such as data loader workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// CPU use of these child processes together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers_percent: Option<f64>,
    /// The number of logical processors of the machine, if the child processes use only a part of
    /// them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// The rate at which the processes read from disks or, if another user's processes may not be
    /// read, the read rate of all disks of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bytes_per_second: Option<f64>,
    /// Receive rate of all network cards of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_bytes_per_second: Option<f64>,
    /// Data per second over PCIe, in the direction with more data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_bytes_per_second: Option<f64>,
    /// Data per second over all NVLinks, in the direction with more data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nvlink_bytes_per_second: Option<f64>,
    /// Share of time in which a multiprocessor had work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sm_percent: Option<f64>,
    /// Share of time in which the tensor cores were busy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tensor_percent: Option<f64>,
    /// Share of time in which the busiest of the other arithmetic units was busy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arithmetic_percent: Option<f64>,
    /// The busiest of the other arithmetic units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arithmetic_unit: Option<ArithmeticUnit>,
    /// Whether the tensor cores mostly worked on double-precision numbers.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[ts(optional, as = "Option<bool>")]
    pub is_tensor_double: bool,
    /// Used bandwidth of device memory as a share of the peak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dram_percent: Option<f64>,
    /// The clock of the multiprocessors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sm_mhz: Option<f64>,
    /// The maximum clock of the multiprocessors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_sm_mhz: Option<f64>,
    /// Whether the temperature reduced the clock, and not the power limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[ts(optional, as = "Option<bool>")]
    pub too_hot: bool,
    /// Whether copies are many and small, so that their number limits and not their size.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[ts(optional, as = "Option<bool>")]
    pub small_copies: bool,
    /// The number of owners whose processes use the multiprocessors, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owners: Option<u32>,
    /// The GPU of the same job that waits least, if the others wait for it (NVML's index).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_gpu: Option<u32>,
    /// How much longer this GPU waits for other GPUs than `slow_gpu` does, in milliseconds of each
    /// second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u32>,
    /// The ranks of the processes on `slow_gpu`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(optional, as = "Option<Vec<u32>>")]
    pub slow_ranks: Vec<u32>,
}

/// A kind of arithmetic units, other than tensor cores.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, TS, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ArithmeticUnit {
    /// Double precision.
    Fp64,
    /// Single precision.
    Fp32,
    /// Half precision.
    Fp16,
    /// Integers.
    Integer,
}

impl LimitEvidence {
    fn hide_private_numbers(&mut self) {
        self.disk_bytes_per_second = None;
        self.slow_ranks.clear();
    }
}

/// The share of a cause in a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct LimitShare {
    /// The cause.
    pub cause: LimitClass,
    /// Share of the measured time, in percent.
    pub percent: f64,
}

/// The causes that limited a GPU during a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct LimitSummary {
    /// The length of the measured windows together.
    pub windows_ms: u64,
    /// The causes with at least 1 % of the time, the largest first.
    pub shares: Vec<LimitShare>,
    /// The numbers that decided in the latest window in which the first cause had the largest
    /// share.
    pub evidence: LimitEvidence,
    /// The evidence for the first cause, as a sentence; empty if another cause has almost the same
    /// share.
    pub text: String,
    /// The advice about the first cause, as a sentence; empty if there is nothing to improve, or if
    /// another cause has almost the same share.
    pub advice: String,
}

impl LimitClass {
    /// Returns the cause with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}

impl Limits {
    /// Adds the GPU that this GPU waits for, and the ranks of the processes on it.
    pub(crate) fn set_slow_gpu(&mut self, gpu: u32, wait_ms: u32, ranks: Vec<u32>) {
        self.evidence.slow_gpu = Some(gpu);
        self.evidence.wait_ms = Some(wait_ms);
        self.evidence.slow_ranks = ranks;
        self.describe();
    }

    fn describe(&mut self) {
        (self.text, self.advice) = self.evidence.describe(self.main);
        if self.confidence == Confidence::Low {
            self.advice.clear();
        }
    }

    /// Returns the main cause with its share, as in `Host-bound 62 %`. If the confidence is
    /// low, returns the second cause, too.
    pub fn main_share(&self) -> String {
        let main = format_headline(self.main, self.share_or_zero(self.main), "");
        let others = LimitClass::ALL.into_iter().filter(|it| *it != self.main);
        let second = others
            .map(|class| (class, self.share_or_zero(class)))
            .filter(|(_, share)| self.confidence == Confidence::Low && *share >= 1.0)
            .max_by(|one, other| one.1.total_cmp(&other.1));
        match second {
            Some((class, share)) => {
                let second = format_headline(class, share, "").to_lowercase();
                format!("{main}, {second}")
            }
            None => main,
        }
    }

    /// Returns the main cause with its share and its evidence, as in `Host-bound 62 %: …`. If the
    /// confidence is low, returns the two largest causes without evidence.
    pub fn summary(&self) -> String {
        if self.confidence == Confidence::Low {
            self.main_share()
        } else {
            format_headline(self.main, self.share_or_zero(self.main), &self.text)
        }
    }

    /// Returns `true` if [`Self::hide_private_numbers`] removes a number.
    pub fn has_private_numbers(&self) -> bool {
        let owners = self.owners.iter().map(|owner| &owner.limits.evidence);
        owners.chain([&self.evidence]).any(|evidence| {
            evidence.disk_bytes_per_second.is_some() || !evidence.slow_ranks.is_empty()
        })
    }

    /// Removes the numbers from `/proc/PID/environ` and `/proc/PID/io`, which only the process's
    /// user may read.
    pub fn hide_private_numbers(&mut self) {
        self.evidence.hide_private_numbers();
        self.describe();
        for OwnerLimits { limits, .. } in &mut self.owners {
            limits.evidence.hide_private_numbers();
            limits.describe();
        }
    }

    fn share_or_zero(&self, class: LimitClass) -> f64 {
        self.get_share(class).value().copied().unwrap_or_default()
    }
}

fn format_headline(cause: LimitClass, percent: f64, text: &str) -> String {
    let headline = format!("{} {percent:.0} %", cause.label());
    if text.is_empty() {
        headline
    } else {
        format!("{headline}: {text}")
    }
}

impl LimitSummary {
    /// Creates a summary from the share of each cause, in percent. `windows_ms` is the total length
    /// of the windows. `find_evidence` returns the numbers for the first cause. Returns `None` if
    /// every share is less than 1 %.
    pub fn new(
        windows_ms: u64,
        shares: impl IntoIterator<Item = (LimitClass, f64)>,
        find_evidence: impl FnOnce(LimitClass) -> LimitEvidence,
    ) -> Option<Self> {
        let shares = shares.into_iter().map(|(cause, percent)| LimitShare {
            cause,
            percent: (percent * 10.0).round() / 10.0,
        });
        let mut shares: Vec<_> = shares.filter(|share| share.percent >= 1.0).collect();
        shares.sort_by(|one, other| other.percent.total_cmp(&one.percent));
        let evidence = find_evidence(shares.first()?.cause);
        let (text, advice) = Default::default();
        let mut summary = Self {
            windows_ms,
            shares,
            evidence,
            text,
            advice,
        };
        summary.describe();
        Some(summary)
    }

    fn describe(&mut self) {
        let percent = |place: usize| self.shares.get(place).map_or(0.0, |share| share.percent);
        let is_clear = Confidence::from_lead(percent(0) - percent(1)) != Confidence::Low;
        (self.text, self.advice) = match self.main() {
            Some(main) if is_clear => self.evidence.describe(main),
            _ => Default::default(),
        };
    }

    /// Returns the mean shares of several GPUs, weighted by the time that was measured on each,
    /// with the evidence of the GPU on which the first cause has the largest share. Returns `None`
    /// if there are no GPUs.
    pub fn combine<'a>(gpus: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let gpus: Vec<_> = gpus.into_iter().collect();
        let windows_ms = gpus.iter().map(|gpu| gpu.windows_ms).sum();
        let mean = |cause| {
            let of_gpu = |gpu: &&Self| gpu.get_percent(cause) * gpu.windows_ms as f64;
            gpus.iter().map(of_gpu).sum::<f64>() / windows_ms as f64
        };
        let shares = LimitClass::ALL.map(|cause| (cause, mean(cause)));
        Self::new(windows_ms, shares, |main| {
            let limited = gpus.iter().filter(|gpu| gpu.main() == Some(main));
            let most = limited
                .max_by(|one, other| one.shares[0].percent.total_cmp(&other.shares[0].percent));
            most.map(|gpu| gpu.evidence.clone()).unwrap_or_default()
        })
    }

    /// Returns the share of a cause in percent, or 0 if it is less than 1 %.
    pub fn get_percent(&self, cause: LimitClass) -> f64 {
        let share = self.shares.iter().find(|share| share.cause == cause);
        share.map_or(0.0, |share| share.percent)
    }

    /// Returns the first cause.
    pub fn main(&self) -> Option<LimitClass> {
        self.shares.first().map(|share| share.cause)
    }

    /// Returns the first cause with its share and its evidence, as in `Host-bound 62 %: …`. If
    /// another cause has almost the same share, returns all causes with their shares.
    pub fn headline(&self) -> String {
        let Self { shares, text, .. } = self;
        match shares.first() {
            Some(first) if !text.is_empty() || shares.len() == 1 => {
                format_headline(first.cause, first.percent, text)
            }
            _ => self.shares_text(),
        }
    }

    /// Returns all causes with their shares, as in `host-bound 62 %, tensor-bound 30 %`.
    pub fn shares_text(&self) -> String {
        let shares = self.shares.iter().map(|share| {
            let label = share.cause.label().to_lowercase();
            format!("{label} {:.0} %", share.percent)
        });
        shares.collect::<Vec<_>>().join(", ")
    }
}

/// Sums up what limited a GPU over several windows.
#[derive(Debug, Clone, Default)]
pub struct LimitSums {
    ms: f64,
    /// The sums of shares and times; `None` for a cause that the GPU's counters cannot show.
    sums: [Option<f64>; LimitClass::ALL.len()],
    /// For each cause that had the largest share of a window, the evidence of the latest such
    /// window.
    evidence: Vec<(LimitClass, LimitEvidence)>,
}

impl LimitSums {
    /// Adds a window, or the part of a window that lasts `ms` milliseconds.
    pub fn add(&mut self, limits: &Limits, ms: f64) {
        self.ms += ms;
        for (sum, class) in self.sums.iter_mut().zip(LimitClass::ALL) {
            if let Some(share) = limits.get_share(class).value() {
                *sum.get_or_insert_default() += share * ms;
            }
        }
        self.set_evidence(limits.main, &limits.evidence);
    }

    /// Adds the windows of a later time.
    pub(crate) fn merge(&mut self, later: &Self) {
        self.ms += later.ms;
        for (sum, more) in self.sums.iter_mut().zip(later.sums) {
            if let Some(more) = more {
                *sum.get_or_insert_default() += more;
            }
        }
        for (class, evidence) in &later.evidence {
            self.set_evidence(*class, evidence);
        }
    }

    fn set_evidence(&mut self, class: LimitClass, evidence: &LimitEvidence) {
        self.evidence.retain(|(known, _)| *known != class);
        self.evidence.push((class, evidence.clone()));
    }

    /// Adds the causes that limited the owners of some processes, for a window or the part of a
    /// window that lasts `ms` milliseconds. An owner that is not in the limits of a shared GPU was
    /// idle.
    pub fn add_owners(&mut self, limits: &Limits, pids: &[u32], ms: f64) {
        if limits.owners.is_empty() {
            return self.add(limits, ms);
        }
        self.ms += ms;
        let is_own = |owner: &&OwnerLimits| owner.pids.iter().any(|pid| pids.contains(pid));
        let own: Vec<_> = limits.owners.iter().filter(is_own).collect();
        let ms = ms / own.len().max(1) as f64;
        if own.is_empty() {
            *self.sums[LimitClass::Idle as usize].get_or_insert_default() += 100.0 * ms;
        }
        for OwnerLimits { limits, .. } in own {
            for share in &limits.shares {
                *self.sums[share.cause as usize].get_or_insert_default() += share.percent * ms;
            }
            if let Some(main) = limits.main() {
                self.set_evidence(main, &limits.evidence);
            }
        }
    }

    /// Returns the time in which each cause limited the GPU, in seconds, without the causes that
    /// the GPU's counters cannot show.
    pub fn seconds(&self) -> impl Iterator<Item = (LimitClass, f64)> {
        let sums = LimitClass::ALL.into_iter().zip(self.sums);
        sums.filter_map(|(class, sum)| Some((class, sum? / 100.0 / 1000.0)))
    }

    /// Returns the summary, or `None` if no window was added.
    pub fn summary(&self) -> Option<LimitSummary> {
        let shares = self.sums.map(|sum| sum.unwrap_or_default() / self.ms);
        let windows_ms = self.ms as u64;
        LimitSummary::new(
            windows_ms,
            LimitClass::ALL.into_iter().zip(shares),
            |main| {
                let mut evidence = self.evidence.iter();
                let known = evidence.find(|(class, _)| *class == main);
                known
                    .map(|(_, evidence)| evidence.clone())
                    .unwrap_or_default()
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_its_json_name() {
        for class in LimitClass::ALL {
            assert_eq!(LimitClass::from_name(class.name()), Some(class));
            assert_eq!(serde_json::to_value(class).unwrap(), class.name());
        }
    }

    #[test]
    fn text_depends_on_the_numbers_that_are_known() {
        let text = |evidence: LimitEvidence, main| evidence.describe(main);
        let alone = LimitEvidence {
            cpu_percent: Some(99.6),
            ..LimitEvidence::default()
        };
        assert_eq!(
            text(alone.clone(), LimitClass::Host).0,
            "A process uses 100 % of a core while the GPU waits."
        );
        let worker = LimitEvidence {
            workers: Some(1),
            workers_percent: Some(99.0),
            ..alone.clone()
        };
        assert_eq!(
            text(worker, LimitClass::Host).0,
            "1 worker process uses 99 % of a core while the GPU waits."
        );
        let loader = LimitEvidence {
            workers: Some(2),
            workers_percent: Some(198.0),
            cores: Some(16),
            ..alone
        };
        assert_eq!(
            text(loader, LimitClass::Host),
            (
                "2 worker processes use 198 % of a core while the GPU waits.".to_owned(),
                "Raise `num_workers`: the loader uses 2 of 16 cores.".to_owned()
            )
        );
        let text_of_input = |disk, network| {
            let evidence = LimitEvidence {
                disk_bytes_per_second: disk,
                network_bytes_per_second: network,
                ..LimitEvidence::default()
            };
            text(evidence, LimitClass::Input).0
        };
        assert_eq!(
            text_of_input(None, None),
            "A process waits for a disk or the network."
        );
        let rate = Some(f64::from(1 << 30));
        assert_eq!(
            text_of_input(rate, rate),
            "A process waits for a disk or the network. Disks deliver 1.00 GiB/s. The network \
             delivers 1.00 GiB/s."
        );
        let slow = LimitEvidence {
            slow_gpu: Some(3),
            wait_ms: Some(180),
            ..LimitEvidence::default()
        };
        assert_eq!(
            text(slow.clone(), LimitClass::Communication).0,
            "Kernels wait 180 ms of each second for GPU 3."
        );
        let slow = LimitEvidence {
            slow_ranks: vec![0],
            ..slow
        };
        assert_eq!(
            text(slow, LimitClass::Communication),
            (
                "Kernels wait 180 ms of each second for GPU 3. GPU 3 runs rank 0.".to_owned(),
                "Find out what limits GPU 3: the other GPUs of the job wait for it.".to_owned()
            )
        );
        let integers = LimitEvidence {
            arithmetic_percent: Some(70.0),
            tensor_percent: Some(0.0),
            arithmetic_unit: Some(ArithmeticUnit::Integer),
            ..LimitEvidence::default()
        };
        assert_eq!(
            text(integers, LimitClass::Compute),
            (
                "Integer units are busy 70 % of the time, tensor cores 0 %.".to_owned(),
                String::new()
            )
        );
    }

    #[test]
    fn unclear_causes_are_named_together() {
        let shares = LimitClass::ALL.map(|class| match class {
            LimitClass::Host => Reading::Now(48.0),
            LimitClass::Transfer => Reading::Now(52.0),
            _ => Reading::Now(0.0),
        });
        let evidence = LimitEvidence {
            pcie_bytes_per_second: Some(f64::from(1 << 30)),
            ..LimitEvidence::default()
        };
        let make = |confidence| {
            let (shares, evidence) = (shares.clone(), evidence.clone());
            Limits::new(1000, shares, LimitClass::Transfer, confidence, evidence)
        };
        let unclear = make(Confidence::Low);
        assert_eq!(unclear.summary(), "Transfer-bound 52 %, host-bound 48 %");
        let clear = make(Confidence::Medium);
        assert_eq!(
            (unclear.advice.as_str(), clear.advice.is_empty()),
            ("", false)
        );
        assert_eq!(clear.main_share(), "Transfer-bound 52 %");
        assert_eq!(
            clear.summary(),
            "Transfer-bound 52 %: PCIe carries 1.00 GiB/s while no kernel runs."
        );
    }

    #[test]
    fn time_of_own_processes_is_summed_up() {
        let shares = LimitClass::ALL.map(|_| Reading::Now(0.0));
        let evidence = LimitEvidence::default();
        let mut limits = Limits::new(1000, shares, LimitClass::Tensor, Confidence::High, evidence);
        let make_owner = |pid, cause| OwnerLimits {
            pids: vec![pid],
            limits: LimitSummary::new(1000, [(cause, 100.0)], |_| LimitEvidence::default())
                .unwrap(),
        };
        limits.owners = vec![
            make_owner(1, LimitClass::Tensor),
            make_owner(2, LimitClass::Host),
        ];
        let sum_up = |pids: &[u32]| {
            let mut sums = LimitSums::default();
            sums.add_owners(&limits, pids, 500.0);
            let summary = sums.summary().unwrap();
            (summary.windows_ms, summary.shares_text())
        };
        assert_eq!(sum_up(&[2]), (500, "host-bound 100 %".to_owned()));
        assert_eq!(
            sum_up(&[1, 2]),
            (500, "host-bound 50 %, tensor-bound 50 %".to_owned())
        );
        assert_eq!(sum_up(&[3]), (500, "idle 100 %".to_owned()));
    }

    #[test]
    fn private_numbers_are_hidden_also_in_texts() {
        let shares = LimitClass::ALL.map(|_| Reading::Now(0.0));
        let evidence = LimitEvidence {
            disk_bytes_per_second: Some(1e9),
            slow_ranks: vec![1],
            ..LimitEvidence::default()
        };
        let mut limits = Limits::new(1000, shares, LimitClass::Input, Confidence::High, evidence);
        limits.hide_private_numbers();
        assert_eq!(limits.text, "A process waits for a disk or the network.");
        assert_eq!(limits.evidence, LimitEvidence::default());
    }

    #[test]
    fn text_without_its_numbers_is_empty() {
        let nothing = LimitEvidence::default();
        let (text, advice) = nothing.describe(LimitClass::Host);
        assert_eq!(text, "");
        assert!(
            advice.starts_with("Prepare data in worker processes"),
            "{advice}"
        );
        let idle = nothing.describe(LimitClass::Idle);
        assert_eq!(idle.0, "No kernels or copies run.");
    }

    #[test]
    fn combined_summary_has_mean_shares() {
        let make = |ms, host, tensor, tensor_percent| {
            let shares = [(LimitClass::Host, host), (LimitClass::Tensor, tensor)];
            let evidence = LimitEvidence {
                tensor_percent: Some(tensor_percent),
                ..LimitEvidence::default()
            };
            LimitSummary::new(ms, shares, |_| evidence).unwrap()
        };
        let gpus = [
            make(1000, 60.0, 40.0, 7.0),
            make(1000, 0.4, 99.6, 90.0),
            make(2000, 20.0, 80.0, 80.0),
        ];
        assert_eq!(gpus[1].shares.len(), 1, "small shares are omitted");
        let all = LimitSummary::combine(&gpus).unwrap();
        assert_eq!(all.shares_text(), "tensor-bound 75 %, host-bound 25 %");
        assert_eq!(all.text, "Tensor cores are busy 90 % of the time.");
        assert_eq!(LimitSummary::combine([]), None);
    }
}
