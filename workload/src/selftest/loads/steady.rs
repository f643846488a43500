//! Loads that repeat workloads of the catalog. Their bytes and operations are counted, and their
//! results are verified.

use gpumon_probe::model::{Absence, Activity, NvLinks, PcieLink, Reading};

use super::{
    super::{LoadContext, LoadResult},
    repeat_for_load_duration,
};
use crate::{
    catalogue,
    cuda::Device,
    error::RunError,
    info::{peak_compute_rate, peak_memory_bandwidth},
    memory_budget::MemoryBudget,
    protocol::{Backend, Cost, Dtype, Extent, Unit},
    selftest::{AcceptedDeviation, Expectation, SampleWindow},
    workload::{Prepared, Size, Workload},
};

/// The minimum size of arrays in bytes. `MIN_SIDE` is the minimum number of rows of matrices.
const MIN_BYTES: u64 = 4 << 20;
const MIN_SIDE: u64 = 128;
/// The minimum number of runs in a load.
const MIN_RUNS: u32 = 50;
/// The number of bytes per second that a PCIe lane can carry, by generation.
const LANE_BYTES_PER_SECOND: [f64; 7] = [0.0, 0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9];

/// Creates a `NamedReading` from the path of a reading in a sample.
macro_rules! named {
    ($part:ident.$reading:ident) => {
        $crate::selftest::loads::steady::NamedReading {
            id: concat!(stringify!($part), ".", stringify!($reading)),
            of: |$part| &$part.$reading,
        }
    };
}

pub(super) use named;

/// A workload that is repeated for the duration of a load.
pub(super) struct SteadyLoad {
    /// The name of the workload in the catalog.
    pub(super) workload: &'static str,
    pub(super) dtype: Dtype,
    pub(super) knows: TestedPart,
}

/// The part of the GPU whose readings show the load.
pub(super) enum TestedPart {
    /// Device memory, which uses a share of its bandwidth.
    Memory,
    /// Arithmetic units, which are active for a share of the time.
    Units(NamedReading<Activity>),
    /// The PCIe link to the host, which is used in one direction.
    Pcie(NamedReading<PcieLink>),
    /// The NVLink to the next GPU.
    NvLink { is_both_ways: bool },
}

/// A reading and its path in a sample.
pub(super) struct NamedReading<T: 'static> {
    pub(super) id: &'static str,
    pub(super) of: fn(&T) -> &Reading<f64>,
}

struct Rates {
    bytes: f64,
    operations: f64,
}

impl SteadyLoad {
    pub(super) fn gpu_count(&self) -> usize {
        catalogue::find_workload(self.workload).map_or(1, |workload| workload.program.gpu_count())
    }

    pub(super) fn put_on_gpu(
        &self,
        context: &LoadContext<'_>,
    ) -> Result<Option<LoadResult>, RunError> {
        let gpu = context.gpu;
        let workload = catalogue::find_workload(self.workload)
            .filter(|workload| workload.program.check_device(gpu, self.dtype).is_ok());
        let Some(workload) = workload else {
            return Ok(None);
        };
        let (cost, mut work) = self.prepare_load(workload, context)?;
        let repeated = repeat_for_load_duration(context, |_| work.run().map(drop))?;
        if !work.verify()?.ok {
            return Err(RunError::Wrong {
                id: workload.about.id,
            });
        }
        let in_a_second = |count: u64| count as f64 * repeated.times as f64 / repeated.seconds;
        let rates = Rates {
            bytes: in_a_second(cost.moved_bytes),
            operations: in_a_second(cost.operations),
        };
        Ok(Some(
            repeated.into_result(self.list_expectations(&rates, gpu.device())),
        ))
    }

    /// Prepares the work with its usual size or, if a run would take too long, with a smaller size.
    /// Otherwise, too few runs would fit into the time of the load, and runs of several seconds
    /// would only be measured in part.
    fn prepare_load<'gpu>(
        &self,
        workload: &Workload,
        context: &LoadContext<'gpu>,
    ) -> Result<(Cost, Box<dyn Prepared + 'gpu>), RunError> {
        let budget = context.gpu.memory_budget()?;
        let usual = workload.usual_size(Backend::Cuda, self.dtype, &budget);
        let smallest = match workload.about.extent {
            Extent::Side => MIN_SIDE,
            _ => MIN_BYTES / self.dtype.bytes(),
        };
        let mut n = smallest.min(usual);
        loop {
            let size = Size {
                n,
                dtype: self.dtype,
            };
            let cost = workload.program.cost_of(size);
            budget.check_bytes_fit(workload.about.id, cost.memory_bytes)?;
            MemoryBudget::for_host(0).check_bytes_fit(workload.about.id, cost.host_bytes)?;
            let mut work = workload.program.prepare_cuda_run(context.gpu, size)?;
            // The first run may have to load the kernel, so it is not counted.
            work.run()?;
            let took_us = work.run()?.host_us;
            if n == usual || took_us * f64::from(MIN_RUNS) > context.time.as_micros() as f64 {
                return Ok((cost, work));
            }
            n = (2 * n).min(usual);
        }
    }

    fn list_expectations(&self, rates: &Rates, device: &Device) -> Vec<Expectation> {
        match &self.knows {
            TestedPart::Memory => vec![expect_memory_bandwidth(rates, device)],
            TestedPart::Units(reading) => vec![
                expect_unit_activity(reading, self.dtype, rates, device),
                expect_energy(),
            ],
            TestedPart::Pcie(reading) => vec![
                expect_pcie_traffic(reading, rates),
                expect_pcie_lanes(rates),
            ],
            TestedPart::NvLink {
                is_both_ways: false,
            } => {
                let [sent, received] = expect_nvlink_traffic(rates.bytes);
                vec![sent, received.for_next_gpu()]
            }
            TestedPart::NvLink { is_both_ways: true } => {
                let each_way = || expect_nvlink_traffic(rates.bytes / 2.0).into_iter();
                each_way()
                    .chain(each_way().map(Expectation::for_next_gpu))
                    .collect()
            }
        }
    }
}

fn expect_memory_bandwidth(rates: &Rates, device: &Device) -> Expectation {
    let made = peak_memory_bandwidth(device).map(|all| to_percent(rates.bytes / all));
    let how = format!(
        "{:.2} GB were read per second, compared with the maximum for the width and clock of \
         the memory bus",
        rates.bytes / 1e9
    );
    Expectation::new(
        "activity.dram_bandwidth_percent",
        Unit::Percent,
        0.0,
        AcceptedDeviation::Within(5.0),
        how,
    )
    .with_expected_value(move |_| made.clone())
    .with_reported_value(|during| during.mean_activity(|activity| &activity.dram_bandwidth_percent))
}

/// Expects that the units are active for a share of time that equals the achieved share of the peak
/// rate. This is the peak rate at the actual clock. The load heats the GPU, which lowers the clock.
fn expect_unit_activity(
    &NamedReading { id, of }: &NamedReading<Activity>,
    dtype: Dtype,
    rates: &Rates,
    device: &Device,
) -> Expectation {
    let (done, peak) = (rates.operations, peak_compute_rate(device, dtype));
    let how = format!(
        "{:.1} trillion operations per second, compared with the peak rate of the units at \
         their actual clock",
        done / 1e12
    );
    let made = move |during: &SampleWindow| {
        let at_a_megahertz = peak
            .value()
            .and_then(|peak| Some(peak.per_second / peak.at_mhz?));
        match (at_a_megahertz, during.mean_sm_mhz()) {
            (_, Reading::Absent(why)) => Reading::Absent(why),
            (None, _) => Reading::Absent(Absence::Unknown),
            (Some(possible), clock) => clock.map(|mhz| to_percent(done / (possible * mhz))),
        }
    };
    // An operation keeps its units busy for at least the time that it takes at the peak rate. In
    // Hopper's products of narrow types, it keeps them busy a tenth longer.
    Expectation::new(
        id,
        Unit::Percent,
        0.0,
        AcceptedDeviation::Times(0.97, 1.15),
        how,
    )
    .with_expected_value(made)
    .with_reported_value(move |during| during.mean_activity(of))
}

fn expect_energy() -> Expectation {
    let how = "the sum of the board's own power measurements".to_owned();
    Expectation::new(
        "power.energy_joules_total",
        Unit::Joules,
        0.0,
        AcceptedDeviation::Times(0.96, 1.04),
        how,
    )
    .with_expected_value(SampleWindow::joules_from_power_readings)
    .with_reported_value(SampleWindow::counted_joules)
}

/// Expects the number of bytes copied over the link to the host, including packet headers.
fn expect_pcie_traffic(
    &NamedReading { id, of }: &NamedReading<PcieLink>,
    rates: &Rates,
) -> Expectation {
    let how = "the bytes that were copied; packet headers are counted, too".to_owned();
    Expectation::new(
        id,
        Unit::BytesPerSecond,
        rates.bytes,
        AcceptedDeviation::Times(0.98, 1.15),
        how,
    )
    .with_reported_value(move |during| during.mean_reading(|sample| of(&sample.pcie).clone()))
}

/// Expects a link whose generation and width can carry the copied bytes. The link may be up to 16
/// times as fast as these bytes require, because on many hosts the copies do not use its whole
/// bandwidth.
fn expect_pcie_lanes(rates: &Rates) -> Expectation {
    let how =
        "a link of this generation and width must be able to carry the copied bytes, but not \
         many times more"
            .to_owned();
    Expectation::new(
        "pcie.generation, pcie.width",
        Unit::BytesPerSecond,
        rates.bytes,
        AcceptedDeviation::Times(1.0, 16.0),
        how,
    )
    .with_reported_value(|during| {
        during.mean_reading(
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

/// Expects the number of bytes that the GPU sends, and the number that it receives.
fn expect_nvlink_traffic(bytes_per_second: f64) -> [Expectation; 2] {
    let new = |NamedReading { id, of }: NamedReading<NvLinks>| {
        let how = "the bytes that were copied; packet headers are counted, too".to_owned();
        Expectation::new(
            id,
            Unit::BytesPerSecond,
            bytes_per_second,
            AcceptedDeviation::Times(0.98, 1.06),
            how,
        )
        .with_reported_value(move |during| during.mean_reading(|sample| of(&sample.nvlink).clone()))
    };
    [
        new(named!(nvlink.tx_bytes_per_second)),
        new(named!(nvlink.rx_bytes_per_second)),
    ]
}

fn to_percent(share: f64) -> f64 {
    share * 100.0
}
