//! Repeated workloads of the catalogue. Their bytes and operations are counted, and their results
//! are verified.

use gpumon_probe::model::{Absence, Activity, NvLinks, PcieLink, Reading};

use super::{
    super::{
        LoadContext, Made,
        expectation::{Accepted, Expectation},
        sample_window::SampleWindow,
    },
    Repeated, repeat,
};
use crate::{
    catalogue,
    cuda::Device,
    error::RunError,
    info::{compute_peak, memory_bandwidth},
    memory_budget::MemoryBudget,
    protocol::{Backend, Cost, Dtype, Extent, Unit},
    workload::{Prepared, Size, Workload},
};

/// The minimum size of arrays in bytes, and of matrices in rows.
const SMALLEST_BYTES: u64 = 4 << 20;
const SMALLEST_SIDE: u64 = 128;
/// The minimum number of runs in a load.
const OFTEN: u32 = 50;
/// The bytes per second that a lane of PCIe carries, by generation.
const LANE_BYTES_PER_SECOND: [f64; 7] = [0.0, 0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9];

/// Returns a reading with its path in a sample.
macro_rules! named {
    ($part:ident.$reading:ident) => {
        $crate::selftest::loads::steady::Named {
            id: concat!(stringify!($part), ".", stringify!($reading)),
            of: |$part| &$part.$reading,
        }
    };
}

pub(super) use named;

/// A workload that is repeated for a while.
pub(super) struct Steady {
    /// The name in the catalogue.
    pub(super) workload: &'static str,
    pub(super) dtype: Dtype,
    pub(super) knows: Knows,
}

/// The part of the GPU whose readings show the load.
pub(super) enum Knows {
    /// Device memory, with a share of its bandwidth in use.
    Memory,
    /// Arithmetic units, in use for a share of the time.
    Units(Named<Activity>),
    /// The link to the host, in one direction.
    Pcie(Named<PcieLink>),
    /// The link to the next GPU.
    NvLink { is_both_ways: bool },
}

/// A reading with its path.
pub(super) struct Named<T: 'static> {
    pub(super) id: &'static str,
    pub(super) of: fn(&T) -> &Reading<f64>,
}

struct Rates {
    bytes: f64,
    operations: f64,
}

impl Steady {
    pub(super) fn gpus(&self) -> usize {
        catalogue::find(self.workload).map_or(1, |workload| workload.program.gpus())
    }

    pub(super) fn put_on(&self, context: &LoadContext<'_>) -> Result<Option<Made>, RunError> {
        let gpu = context.gpu;
        let workload = catalogue::find(self.workload)
            .filter(|workload| workload.program.check_device(gpu, self.dtype).is_ok());
        let Some(workload) = workload else {
            return Ok(None);
        };
        let (cost, mut work) = self.ready(workload, context)?;
        let Repeated {
            from_ms,
            to_ms,
            seconds,
            times,
        } = repeat(context, |_| work.run().map(drop))?;
        if !work.verify()?.ok {
            return Err(RunError::Wrong {
                id: workload.about.id,
            });
        }
        let in_a_second = |count: u64| count as f64 * times as f64 / seconds;
        let rates = Rates {
            bytes: in_a_second(cost.moved_bytes),
            operations: in_a_second(cost.operations),
        };
        Ok(Some(Made {
            from_ms,
            to_ms,
            expectations: self.expectations(&rates, gpu.device()),
        }))
    }

    /// Prepares the work with its usual size, or with a smaller one if it would not run often
    /// enough. A run that takes seconds would only be read in part.
    fn ready<'gpu>(
        &self,
        workload: &Workload,
        context: &LoadContext<'gpu>,
    ) -> Result<(Cost, Box<dyn Prepared + 'gpu>), RunError> {
        let budget = context.gpu.memory_budget()?;
        let usual = workload.usual_n(Backend::Cuda, self.dtype, &budget);
        let smallest = match workload.about.extent {
            Extent::Side => SMALLEST_SIDE,
            _ => SMALLEST_BYTES / self.dtype.bytes(),
        };
        let mut n = smallest.min(usual);
        loop {
            let size = Size {
                n,
                dtype: self.dtype,
            };
            let cost = workload.program.cost_of(size);
            budget.check(workload.about.id, cost.memory_bytes)?;
            MemoryBudget::for_host(0).check(workload.about.id, cost.host_bytes)?;
            let mut work = workload.program.on_cuda(context.gpu, size)?;
            // The first run may have to load the kernel.
            work.run()?;
            let took_us = work.run()?.host_us;
            if n == usual || took_us * f64::from(OFTEN) > context.time.as_micros() as f64 {
                return Ok((cost, work));
            }
            n = (2 * n).min(usual);
        }
    }

    fn expectations(&self, rates: &Rates, device: &Device) -> Vec<Expectation> {
        match &self.knows {
            Knows::Memory => vec![memory(rates, device)],
            Knows::Units(reading) => vec![units(reading, self.dtype, rates, device), energy()],
            Knows::Pcie(reading) => vec![pcie(reading, rates), lanes(rates)],
            Knows::NvLink {
                is_both_ways: false,
            } => {
                let [sent, received] = nvlink(rates.bytes);
                vec![sent, received.for_next()]
            }
            Knows::NvLink { is_both_ways: true } => {
                let each_way = || nvlink(rates.bytes / 2.0).into_iter();
                each_way()
                    .chain(each_way().map(Expectation::for_next))
                    .collect()
            }
        }
    }
}

fn memory(rates: &Rates, device: &Device) -> Expectation {
    let made = memory_bandwidth(device).map(|all| percent(rates.bytes / all));
    let how = format!(
        "{:.2} GB were read in a second, by width and clock of the memory's bus",
        rates.bytes / 1e9
    );
    Expectation::new(
        "activity.dram_bandwidth_percent",
        Unit::Percent,
        0.0,
        Accepted::Within(5.0),
        how,
    )
    .made(move |_| made.clone())
    .reported(|during| during.activity(|activity| &activity.dram_bandwidth_percent))
}

/// Expects a share of the peak at the actual clock of the multiprocessors, because a load this hot
/// lowers the clock.
fn units(
    &Named { id, of }: &Named<Activity>,
    dtype: Dtype,
    rates: &Rates,
    device: &Device,
) -> Expectation {
    let (done, peak) = (rates.operations, compute_peak(device, dtype));
    let how = format!(
        "{:.1} T operations in a second, of what the units can do at their clock",
        done / 1e12
    );
    let made = move |during: &SampleWindow| {
        let at_a_megahertz = peak
            .value()
            .and_then(|peak| Some(peak.per_second / peak.at_mhz?));
        match (at_a_megahertz, during.sm_mhz()) {
            (_, Reading::Absent(why)) => Reading::Absent(why),
            (None, _) => Reading::Absent(Absence::Unknown),
            (Some(possible), clock) => clock.map(|mhz| percent(done / (possible * mhz))),
        }
    };
    // An operation keeps its units busy for at least the shortest possible time. Hopper's products
    // of narrow types take a tenth longer.
    Expectation::new(id, Unit::Percent, 0.0, Accepted::Times(0.97, 1.15), how)
        .made(made)
        .reported(move |during| during.activity(of))
}

fn energy() -> Expectation {
    let how = "the board's own measurements of its power, added up".to_owned();
    Expectation::new(
        "power.energy_joules_total",
        Unit::Joules,
        0.0,
        Accepted::Times(0.96, 1.04),
        how,
    )
    .made(SampleWindow::joules_by_power)
    .reported(SampleWindow::joules)
}

/// Expects the copied bytes on the link to the host, plus packet headers.
fn pcie(&Named { id, of }: &Named<PcieLink>, rates: &Rates) -> Expectation {
    let how = "the bytes that were copied; packets have headers, which count too".to_owned();
    Expectation::new(
        id,
        Unit::BytesPerSecond,
        rates.bytes,
        Accepted::Times(0.98, 1.15),
        how,
    )
    .reported(move |during| during.mean(|sample| of(&sample.pcie).clone()))
}

/// Expects a generation and width of the link that can carry the copied bytes. Many hosts do not
/// use all of it.
fn lanes(rates: &Rates) -> Expectation {
    let how =
        "a link of this generation and width carries what was copied, and not many times as much"
            .to_owned();
    Expectation::new(
        "pcie.generation, pcie.width",
        Unit::BytesPerSecond,
        rates.bytes,
        Accepted::Times(1.0, 16.0),
        how,
    )
    .reported(|during| {
        during.mean(
            |sample| match (&sample.pcie.generation, &sample.pcie.width) {
                (Reading::Absent(why), _) | (_, Reading::Absent(why)) => {
                    Reading::Absent(why.clone())
                }
                (generation, width) => width.clone().map(|width| {
                    let generation = generation
                        .value()
                        .map_or(0, |generation| *generation as usize);
                    f64::from(width)
                        * LANE_BYTES_PER_SECOND
                            .get(generation)
                            .copied()
                            .unwrap_or_default()
                }),
            },
        )
    })
}

/// Expects the bytes that the GPU sends, and those that it receives.
fn nvlink(bytes_per_second: f64) -> [Expectation; 2] {
    let new = |Named { id, of }: Named<NvLinks>| {
        let how = "the bytes that were copied; packets have headers, which count too".to_owned();
        Expectation::new(
            id,
            Unit::BytesPerSecond,
            bytes_per_second,
            Accepted::Times(0.98, 1.06),
            how,
        )
        .reported(move |during| during.mean(|sample| of(&sample.nvlink).clone()))
    };
    [
        new(named!(nvlink.tx_bytes_per_second)),
        new(named!(nvlink.rx_bytes_per_second)),
    ]
}

fn percent(share: f64) -> f64 {
    share * 100.0
}
