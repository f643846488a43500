//! The stress test, which compares each matrix product with the first one. It finds out whether a
//! device computes and stores data correctly while it is hot.
//!
//! Memory is filled with products in pieces, and each piece is compared and poisoned just before it
//! is filled again. The products are those of `matmul`, with the same kernels, inputs and check.
//! The first product is compared with a reference of higher precision, element by element. All
//! others must be equal to it in every bit. Results that were not compared do not count as correct:
//! a stress test without any comparison fails.
//!
//! - [`Burnable`] is the interface of a device under test, and [`on_cuda`] and [`on_cpu`] implement
//!   it.
//! - [`matrix_size`] chooses the size of the matrices, and the number of products that are started
//!   together.

mod matrix_size;
mod on_cpu;
mod on_cuda;

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use gpumon_probe::model::now_ms;

use self::{matrix_size::SIDES, on_cpu::OnCpu, on_cuda::OnCuda};
use crate::{
    bench::Place,
    catalogue::matmul::{self, needs},
    cuda::Device,
    error::RunError,
    info::Cpu,
    memory_budget::MemoryBudget,
    protocol::{
        Bound, Cost, Dtype, Engine, Extent, KernelUse, Outcome, Phase, Rate, Stopped, Verification,
    },
    random::SEED,
    roofline::roofline,
    workload::Size,
};

pub(crate) const ID: &str = "burn";
/// The minimum number of products in memory, in addition to the factors and the first product.
const FEWEST: u64 = 8;
/// The maximum memory on a CPU. The host's memory is not under test, and a container may have less
/// of it than the system reports.
const MOST_ON_CPU: u64 = 1 << 30;
/// The time between two progress reports.
const TELL_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy)]
pub(crate) struct BurnRequest {
    /// The duration, from when the first product has been checked.
    pub time: Duration,
    /// The share of the free memory to fill, from 0 to 1.
    pub memory: f64,
    /// The type of numbers; the usual one if this is `None`.
    pub dtype: Option<Dtype>,
}

/// Returns the type of numbers for a GPU, or for the CPU without `device`. By default, this is bf16
/// if there are tensor cores for it, because it causes the highest load, and fp32 otherwise.
pub(crate) fn dtype_on(device: Option<&Device>, asked: Option<Dtype>) -> Result<Dtype, RunError> {
    let has = device.map(|device| device.capability);
    let usual = if has >= Some(needs(Dtype::Bf16)) {
        Dtype::Bf16
    } else {
        Dtype::Fp32
    };
    let dtype = asked.unwrap_or(usual);
    // A CPU converts narrower types before it multiplies them, so they cause no higher load.
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
        Some(has) if has < needs(dtype) => Err(RunError::NotOnThisGpu {
            id: ID,
            dtype,
            needed: needs(dtype),
            has,
        }),
        _ => Ok(dtype),
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Burning {
    Phase(Phase),
    /// The progress, sent once a second.
    Progress {
        /// The elapsed share of the time, from 0 to 1.
        share: f64,
        operations_per_second: f64,
        /// The number of wrong words so far.
        wrong: u64,
    },
}

trait Burnable {
    /// Returns the number of rows of each matrix.
    fn side(&self) -> u64;
    /// Returns the memory in use, in bytes.
    fn bytes(&self) -> u64;
    /// Returns the number of words of a product, which are the unit of comparison.
    fn words(&self) -> u64;
    /// Returns the kernel in use if there are several to choose from.
    fn kernel(&self) -> Result<Option<KernelUse>, RunError> {
        Ok(None)
    }
    /// Returns the number of pieces that memory is divided into.
    fn pieces(&self) -> usize;
    /// Returns the number of products in a piece, which is limited so that an interruption takes
    /// effect soon.
    fn products(&self, piece: usize) -> u64;
    /// Computes the product that all others are compared with, and checks it against the reference.
    fn first(&mut self) -> Result<Verification, RunError>;
    /// Fills a piece with products, after comparing its previous ones.
    fn multiply(&mut self, piece: usize, was_filled: bool) -> Result<(), RunError>;
    /// Compares a piece with the first product, and poisons it.
    fn compare(&mut self, piece: usize) -> Result<(), RunError>;
    /// Returns the number of wrong words among all compared ones.
    fn wrong(&mut self) -> Result<u64, RunError>;
}

/// Runs a stress test for the requested time, or until `interrupted` is set. All memory is released
/// before this returns.
pub(crate) fn run(
    place: &Place<'_>,
    cpu: &Cpu,
    request: &BurnRequest,
    interrupted: &AtomicBool,
    tell: &mut dyn FnMut(Burning),
) -> Result<Outcome, RunError> {
    let device = if let Place::Cuda(gpu) = place {
        Some(gpu.device())
    } else {
        None
    };
    let dtype = dtype_on(device, request.dtype)?;
    tell(Burning::Phase(Phase::Preparing));
    let mut work = prepare(place, dtype, request.memory)?;
    let (side, words, memory_bytes) = (work.side(), work.words(), work.bytes());
    let kernel = work.kernel()?;
    let mut burnt = Burnt {
        operations: 2 * side.pow(3),
        words,
        ..Burnt::default()
    };
    let (stopped, elapsed) = burnt.burn(work.as_mut(), request.time, interrupted, tell)?;
    let to_ms = now_ms();
    // The time for the check of the first product does not count.
    let from_ms = to_ms - elapsed.as_millis() as u64;
    tell(Burning::Phase(Phase::GivingBack));
    drop(work);

    let rate = Rate::from_operations(burnt.products.saturating_mul(burnt.operations), elapsed);
    Ok(Outcome {
        id: ID.into(),
        seed: SEED.into(),
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
        partial: stopped == Stopped::Interrupted,
        roofline: roofline(Bound::Compute, &rate, place.rated(Bound::Compute, dtype)),
        rate,
        verify: burnt.verify(),
        environment: place.environment(cpu, from_ms, to_ms),
    })
}

fn prepare<'a>(
    place: &'a Place<'_>,
    dtype: Dtype,
    share: f64,
) -> Result<Box<dyn Burnable + 'a>, RunError> {
    let budget = place.memory_budget()?;
    let wanted = ((budget.free_bytes as f64 * share) as u64).min(budget.usable_bytes());
    let least = SIDES[SIDES.len() - 1];
    let (work, needed_bytes, allowed_bytes) = match place {
        Place::Cuda(gpu) => {
            let work = OnCuda::new(gpu, dtype, wanted)?
                .map(|work| Box::new(work) as Box<dyn Burnable + 'a>);
            (
                work,
                on_cuda::needed_bytes(Size { n: least, dtype }),
                wanted,
            )
        }
        Place::Cpu(_) => {
            let bytes = wanted.min(MOST_ON_CPU);
            let work: Option<Box<dyn Burnable>> = match dtype {
                Dtype::Fp64 => OnCpu::<f64>::new(bytes)?.map(|work| Box::new(work) as _),
                _ => OnCpu::<f32>::new(bytes)?.map(|work| Box::new(work) as _),
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

/// Returns the sides that need no more than `bytes` of memory. `sides` begins with the largest.
fn fitting(sides: &[u64], bytes: u64, needed: impl Fn(u64) -> u64) -> &[u64] {
    let too_large = sides
        .iter()
        .take_while(|side| needed(**side) > bytes)
        .count();
    &sides[too_large..]
}

#[derive(Debug, Default)]
struct Burnt {
    /// The number of operations of one product.
    operations: u64,
    /// The number of words of one product.
    words: u64,
    products: u64,
    /// The verification of the first product.
    first: Option<Verification>,
    compared: u64,
    wrong: u64,
}

impl Burnt {
    fn burn(
        &mut self,
        work: &mut dyn Burnable,
        time: Duration,
        interrupted: &AtomicBool,
        tell: &mut dyn FnMut(Burning),
    ) -> Result<(Stopped, Duration), RunError> {
        let is_stopped = || interrupted.load(Relaxed);
        if is_stopped() {
            return Ok((Stopped::Interrupted, Duration::ZERO));
        }
        tell(Burning::Phase(Phase::Checking));
        self.first = Some(work.first()?);
        tell(Burning::Phase(Phase::Measuring));
        let begun = Instant::now();
        let mut beat = Beat {
            at: begun,
            products: 0,
        };
        let is_over = || is_stopped() || begun.elapsed() >= time;
        // A piece is compared just before it is filled again, so that its products stay in memory
        // as long as possible, and the GPU does little but multiply. A comparison of all pieces at
        // once made the power vary for a second afterward, at 0.95 of its mean.
        let mut filled = 0;
        for piece in (0..work.pieces()).cycle() {
            let was_filled = piece < filled;
            work.multiply(piece, was_filled)?;
            let words = work.products(piece) * self.words;
            self.compared += if was_filled { words } else { 0 };
            self.products += work.products(piece);
            filled = filled.max(piece + 1);
            if beat.at.elapsed() >= TELL_EVERY {
                self.wrong = work.wrong()?;
                self.tell(&mut beat, begun, time, tell);
            }
            if is_over() {
                break;
            }
        }
        for piece in 0..filled {
            work.compare(piece)?;
            self.compared += work.products(piece) * self.words;
        }
        self.wrong = work.wrong()?;
        let stopped = if is_stopped() {
            Stopped::Interrupted
        } else {
            Stopped::TimeLimit
        };
        Ok((stopped, begun.elapsed()))
    }

    fn tell(&self, beat: &mut Beat, begun: Instant, time: Duration, tell: &mut dyn FnMut(Burning)) {
        let passed = beat.at.elapsed();
        let operations = (self.products - beat.products) * self.operations;
        *beat = Beat {
            at: Instant::now(),
            products: self.products,
        };
        tell(Burning::Progress {
            share: (begun.elapsed().as_secs_f64() / time.as_secs_f64()).min(1.0),
            operations_per_second: operations as f64 / passed.as_secs_f64(),
            wrong: self.wrong,
        });
    }

    /// Returns the combined result for the first product and all comparisons with it.
    fn verify(&self) -> Verification {
        let first = self.first.unwrap_or_else(Verification::nothing);
        let others = Verification::for_words(self.compared, self.wrong);
        let both = first.and(others);
        Verification {
            ok: first.ok && others.ok,
            ..both
        }
    }
}

struct Beat {
    at: Instant,
    products: u64,
}

#[cfg(test)]
mod tests;
