//! The stress test, which compares each matrix product with the first one. It shows whether a
//! device computes and stores data correctly while it is hot.
//!
//! Memory is filled with products piece by piece. Each piece is compared and poisoned just before
//! it is filled again. The products are those of `matmul`, with the same kernels, inputs and check.
//! The first product is compared with a reference of higher precision, element by element. All
//! later products must be equal to the first in every bit. Results that were not compared do not
//! count as correct: a stress test without any comparison fails.
//!
//! - [`Burnable`] is the interface of a device under test. [`on_cuda`] and [`on_cpu`] implement it.
//! - [`choose_largest_side`] chooses the size of the matrices.

mod on_cpu;
mod on_cuda;

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use gpumon_probe::model::now_ms;

use self::{on_cpu::CpuBurn, on_cuda::CudaBurn};
use crate::{
    bench::ExecutionPlace,
    catalogue::matmul::{self, required_capability},
    cuda::Device,
    error::RunError,
    gpu::Gpu,
    info::{Cpu, peaks::compute_roofline},
    memory_budget::MemoryBudget,
    numbers::SEED_TEXT,
    protocol::{
        Cost, Dtype, Engine, Extent, KernelUse, LimitingResource, MeasureEnd, Phase, RunOutcome,
        Throughput, Verification,
    },
    workload::Size,
};

pub(crate) const ID: &str = "burn";
/// The minimum number of products in memory, in addition to the factors and the first product.
const MIN_PRODUCTS: u64 = 8;
/// The maximum memory used on a CPU, in bytes. The host's memory is not under test, and a container
/// may have less memory than the system reports.
const MAX_BYTES_ON_CPU: u64 = 1 << 30;
/// The time between two progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy)]
pub(crate) struct BurnRequest {
    /// The duration of the test after the first product has been checked.
    pub time: Duration,
    /// The share of the free memory that is filled, from 0 to 1.
    pub memory: f64,
    /// The number type, or `None` for the usual one.
    pub dtype: Option<Dtype>,
}

/// Returns the number type for a GPU, or for the CPU if `device` is `None`. The default is bf16 on
/// GPUs with bf16 tensor cores, because it causes the highest load, and fp32 otherwise.
pub(crate) fn choose_dtype(
    device: Option<&Device>,
    asked: Option<Dtype>,
) -> Result<Dtype, RunError> {
    let has = device.map(|device| device.capability);
    let usual = if has >= Some(required_capability(Dtype::Bf16)) {
        Dtype::Bf16
    } else {
        Dtype::Fp32
    };
    let dtype = asked.unwrap_or(usual);
    // A CPU converts narrower types before multiplying. They would cause no higher load, so they
    // are not supported here.
    let valid = if has.is_some() {
        matmul::DTYPES
    } else {
        &[Dtype::Fp32, Dtype::Fp64]
    };
    match has {
        _ if !valid.contains(&dtype) => Err(RunError::NoSuchType {
            id: ID,
            dtype,
            valid,
        }),
        Some(has) if has < required_capability(dtype) => Err(RunError::NotOnThisGpu {
            id: ID,
            dtype,
            needed: required_capability(dtype),
            has,
        }),
        _ => Ok(dtype),
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum BurnProgress {
    Phase(Phase),
    /// The progress of the test, sent once a second.
    Progress {
        /// The share of the requested time that has elapsed, from 0 to 1.
        share: f64,
        operations_per_second: f64,
        /// The number of wrong words so far.
        wrong: u64,
    },
}

trait Burnable {
    /// Returns the number of rows of each matrix.
    fn matrix_side(&self) -> u64;
    /// Returns the memory in use, in bytes.
    fn used_bytes(&self) -> u64;
    /// Returns the number of words in a product. Products are compared word by word.
    fn words_per_product(&self) -> u64;
    /// Returns the kernel in use, if there are several to choose from.
    fn kernel(&self) -> Result<Option<KernelUse>, RunError> {
        Ok(None)
    }
    /// Returns the number of pieces that memory is divided into.
    fn piece_count(&self) -> usize;
    /// Returns the number of products in a piece. The number is limited, so that the test can be
    /// interrupted quickly.
    fn products_in_piece(&self, piece: usize) -> u64;
    /// Computes the first product, and checks it against the reference. All other products are
    /// compared with it.
    fn compute_first(&mut self) -> Result<Verification, RunError>;
    /// Fills a piece with products. If `was_filled` is set, the piece's previous products are
    /// compared first.
    fn fill_piece_with_products(&mut self, piece: usize, was_filled: bool) -> Result<(), RunError>;
    /// Compares a piece with the first product, and poisons it.
    fn compare_and_poison_piece(&mut self, piece: usize) -> Result<(), RunError>;
    /// Returns the number of words that were found to be wrong so far.
    fn count_wrong_words(&mut self) -> Result<u64, RunError>;
}

/// Runs a stress test for the requested time, or until `interrupted` is set. All memory is released
/// before this function returns.
pub(crate) fn run_burn(
    place: &ExecutionPlace<'_>,
    cpu: &Cpu,
    request: &BurnRequest,
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(BurnProgress),
) -> Result<RunOutcome, RunError> {
    let dtype = choose_dtype(place.gpu().map(Gpu::device), request.dtype)?;
    tell(BurnProgress::Phase(Phase::Preparing));
    let mut work = prepare_burn(place, dtype, request.memory)?;
    let (side, words, memory_bytes) = (
        work.matrix_side(),
        work.words_per_product(),
        work.used_bytes(),
    );
    let kernel = work.kernel()?;
    let mut burnt = BurnResults {
        operations: 2 * side.pow(3),
        words,
        ..BurnResults::default()
    };
    let (stopped, elapsed) = burnt.run_work(work.as_mut(), request.time, interrupted, tell)?;
    let to_ms = now_ms();
    // The time spent on checking the first product is not included.
    let from_ms = to_ms - elapsed.as_millis() as u64;
    tell(BurnProgress::Phase(Phase::GivingBack));
    drop(work);

    let rate =
        Throughput::from_operations(burnt.products.saturating_mul(burnt.operations), elapsed);
    Ok(RunOutcome {
        id: ID.into(),
        seed: SEED_TEXT.into(),
        backend: place.backend(),
        engine: Engine::Own,
        device: place.name(),
        to: None,
        kernel,
        dtype,
        n: side,
        extent: Extent::Side,
        shape: None,
        cost: Cost {
            memory_bytes,
            operations: burnt.operations,
            ..Cost::default()
        },
        device_time: None,
        host_time: None,
        stopped,
        partial: stopped == MeasureEnd::Interrupted,
        roofline: compute_roofline(
            LimitingResource::Compute,
            &rate,
            place.rated_peak(LimitingResource::Compute, dtype),
        ),
        rate,
        verify: burnt.combined_verification(),
        environment: place.environment(cpu, from_ms, to_ms),
    })
}

fn prepare_burn<'a>(
    place: &'a ExecutionPlace<'_>,
    dtype: Dtype,
    share: f64,
) -> Result<Box<dyn Burnable + 'a>, RunError> {
    let budget = place.memory_budget()?;
    let wanted = ((budget.free_bytes as f64 * share) as u64).min(budget.usable_bytes());
    let least = MATRIX_SIDES[MATRIX_SIDES.len() - 1];
    let (work, needed_bytes, allowed_bytes) = match place {
        ExecutionPlace::Cuda(gpu) => {
            let work = CudaBurn::new(gpu, dtype, wanted)?
                .map(|work| Box::new(work) as Box<dyn Burnable + 'a>);
            (
                work,
                on_cuda::needed_bytes(Size { n: least, dtype }),
                wanted,
            )
        }
        ExecutionPlace::Cpu(_) => {
            let bytes = wanted.min(MAX_BYTES_ON_CPU);
            let work: Option<Box<dyn Burnable>> = match dtype {
                Dtype::Fp64 => CpuBurn::<f64>::new(bytes)?.map(|work| Box::new(work) as _),
                _ => CpuBurn::<f32>::new(bytes)?.map(|work| Box::new(work) as _),
            };
            (work, on_cpu::needed_bytes(least, dtype.bytes()), bytes)
        }
    };
    let MemoryBudget {
        place, free_bytes, ..
    } = budget;
    work.ok_or(RunError::TooLittle {
        id: ID,
        place,
        needed_bytes,
        allowed_bytes,
        free_bytes,
    })
}

/// Returns the `sides` for which `needed` is at most `bytes`. A side is the number of rows of a
/// matrix. `sides` begins with the largest.
fn fitting_sides(sides: &[u64], bytes: u64, needed: impl Fn(u64) -> u64) -> &[u64] {
    let too_large = sides
        .iter()
        .take_while(|side| needed(**side) > bytes)
        .count();
    &sides[too_large..]
}

#[derive(Debug, Default)]
struct BurnResults {
    /// The number of operations in one product.
    operations: u64,
    /// The number of words in one product.
    words: u64,
    products: u64,
    /// The result of verifying the first product.
    first: Option<Verification>,
    compared: u64,
    wrong: u64,
}

impl BurnResults {
    fn run_work(
        &mut self,
        work: &mut dyn Burnable,
        time: Duration,
        interrupted: &AtomicBool,
        tell: &mut dyn FnMut(BurnProgress),
    ) -> Result<(MeasureEnd, Duration), RunError> {
        let is_stopped = || interrupted.load(Relaxed);
        if is_stopped() {
            return Ok((MeasureEnd::Interrupted, Duration::ZERO));
        }
        tell(BurnProgress::Phase(Phase::Checking));
        self.first = Some(work.compute_first()?);
        tell(BurnProgress::Phase(Phase::Measuring));
        let begun = Instant::now();
        let mut beat = LastReport {
            at: begun,
            products: 0,
        };
        let is_over = || is_stopped() || begun.elapsed() >= time;
        // A piece is compared just before it is filled again. So its products stay in memory for as
        // long as possible, and the GPU multiplies nearly all the time. If all pieces were compared
        // together, the power draw would fluctuate for a second afterward, and would be 5 % below
        // its mean.
        let mut filled = 0;
        for piece in (0..work.piece_count()).cycle() {
            let was_filled = piece < filled;
            work.fill_piece_with_products(piece, was_filled)?;
            let words = work.products_in_piece(piece) * self.words;
            self.compared += if was_filled { words } else { 0 };
            self.products += work.products_in_piece(piece);
            filled = filled.max(piece + 1);
            if beat.at.elapsed() >= PROGRESS_INTERVAL {
                self.wrong = work.count_wrong_words()?;
                self.report_progress(&mut beat, begun, time, tell);
            }
            if is_over() {
                break;
            }
        }
        for piece in 0..filled {
            work.compare_and_poison_piece(piece)?;
            self.compared += work.products_in_piece(piece) * self.words;
        }
        self.wrong = work.count_wrong_words()?;
        let stopped = if is_stopped() {
            MeasureEnd::Interrupted
        } else {
            MeasureEnd::TimeLimit
        };
        Ok((stopped, begun.elapsed()))
    }

    fn report_progress(
        &self,
        beat: &mut LastReport,
        begun: Instant,
        time: Duration,
        tell: &mut dyn FnMut(BurnProgress),
    ) {
        let passed = beat.at.elapsed();
        let operations = (self.products - beat.products) * self.operations;
        *beat = LastReport {
            at: Instant::now(),
            products: self.products,
        };
        tell(BurnProgress::Progress {
            share: (begun.elapsed().as_secs_f64() / time.as_secs_f64()).min(1.0),
            operations_per_second: operations as f64 / passed.as_secs_f64(),
            wrong: self.wrong,
        });
    }

    /// Combines the verification of the first product with the comparisons of all other products.
    fn combined_verification(&self) -> Verification {
        let first = self.first.unwrap_or_else(Verification::empty);
        let others = Verification::from_word_counts(self.compared, self.wrong);
        let both = first.merge(others);
        Verification {
            ok: first.ok && others.ok,
            ..both
        }
    }
}

struct LastReport {
    at: Instant,
    products: u64,
}

// The choice of a matrix size for the stress test. Matrices are as large as memory allows, but
// small enough that an interruption takes effect quickly.

/// The numbers of rows of a matrix to choose from, which are multiples of every tile size. The
/// larger a product, the smaller the share of time spent on comparing it: 2 % with 16384 rows on an
/// H200. Comparison and multiplication cannot run concurrently, because Hopper's kernels occupy all
/// registers.
const MATRIX_SIDES: [u64; 7] = [16384, 8192, 4096, 2048, 1024, 512, 256];
/// The largest number of rows of a matrix on a CPU. It is limited because each element of the first
/// product is computed again in higher precision.
const MAX_SIDE_ON_CPU: u64 = 1024;
/// The maximum time that one product may take.
const MAX_PRODUCT_TIME: Duration = Duration::from_millis(50);
/// The total time of the products that are launched together. If a GPU waited for the host after
/// each product, it would cool down between products.
const BATCH_TIME: Duration = Duration::from_millis(60);

/// Work on matrices of a certain size, and the time that one product was measured to take.
struct TimedWork<W> {
    work: W,
    product: Duration,
}

impl<W> TimedWork<W> {
    /// Returns the number of products that are launched together.
    fn batch_size(&self) -> u64 {
        (BATCH_TIME.as_secs_f64() / self.product.as_secs_f64().max(1e-9)).max(1.0) as u64
    }
}

/// Creates work with the largest matrices whose product is fast enough. `sides` contains the
/// numbers of rows to choose from, beginning with the largest. The first products are small. Each
/// measured time decides which larger size is tried next, so no slow product is ever started. A
/// large product is never slower than predicted from a small one, because small products use only a
/// part of a large GPU.
fn choose_largest_side<W>(
    sides: &[u64],
    mut make: impl FnMut(u64) -> Result<TimedWork<W>, RunError>,
) -> Result<Option<TimedWork<W>>, RunError> {
    let Some(mut side) = sides.last().copied() else {
        return Ok(None);
    };
    loop {
        let timed = make(side)?;
        let foreseen =
            |next: u64| timed.product.as_secs_f64() * (next as f64 / side as f64).powi(3);
        let next = sides
            .iter()
            .find(|next| **next > side && foreseen(**next) <= MAX_PRODUCT_TIME.as_secs_f64());
        match next {
            Some(next) => side = *next,
            None => return Ok(Some(timed)),
        }
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod matrix_size_tests {
    use super::*;

    /// Returns the number of rows that is chosen for a simulated device, and all numbers of rows
    /// that were tried. The device computes `per_second` operations per second, and needs
    /// `begin_us` to start.
    fn choose_side_on_device(per_second: f64, begin_us: f64, sides: &[u64]) -> (u64, Vec<u64>) {
        let mut tried = Vec::new();
        let timed = choose_largest_side(sides, |side| {
            tried.push(side);
            let seconds = 2.0 * (side as f64).powi(3) / per_second + begin_us * 1e-6;
            assert!(seconds < 0.05, "{side} takes {seconds} s");
            Ok(TimedWork {
                work: side,
                product: Duration::from_secs_f64(seconds),
            })
        });
        (timed.unwrap().unwrap().work, tried)
    }

    #[test]
    fn faster_gpu_gets_larger_matrix_side() {
        assert_eq!(choose_side_on_device(760e12, 5.0, &MATRIX_SIDES).0, 16384);
        assert_eq!(choose_side_on_device(60e12, 5.0, &MATRIX_SIDES).0, 8192);
        assert_eq!(choose_side_on_device(1e12, 5.0, &MATRIX_SIDES).0, 2048);
        let (side, tried) = choose_side_on_device(0.03e12, 5.0, &MATRIX_SIDES);
        assert_eq!((side, tried), (512, vec![256, 512]));
        assert_eq!(
            choose_side_on_device(760e12, 5.0, &MATRIX_SIDES[4..]).0,
            1024,
            "where there is no room for more"
        );
    }

    #[test]
    fn burn_work_requires_fitting_matrix_side() {
        assert!(
            choose_largest_side::<()>(&[], |_| panic!("nothing fits"))
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn burn_batch_size_decreases_with_product_time() {
        let at_once = |us| {
            TimedWork {
                work: (),
                product: Duration::from_micros(us),
            }
            .batch_size()
        };
        assert_eq!([1490, 29_000, 70_000].map(at_once), [40, 2, 1]);
        assert!(
            at_once(0) > 1000,
            "a clock that saw nothing pass does not divide by it"
        );
    }
}
