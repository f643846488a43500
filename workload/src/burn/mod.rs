//! Products of matrices without end, each of which is compared with the first: load that finds out
//! whether a device computes and remembers right while it is hot.
//!
//! Memory is filled with products, piece by piece, and each piece is compared and poisoned just
//! before it is filled again. They are the products of `matmul`: the same kernels, inputs and
//! check, which compares the first one element by element with a reference of higher precision. The
//! others have to be equal to that in every bit. What was not compared is not right: a burn that
//! checked nothing has failed.
//!
//! - [`Burnable`] is what can be burnt, [`on_cuda`] and [`on_cpu`] are the two that there are.
//! - [`matrix_size`] is how large the matrices are, and how many are multiplied before anybody
//!   looks up.

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
/// So many products fit at least, beside the factors and the first one.
const FEWEST: u64 = 8;
/// A host's memory is not what is tested on a CPU, and a container may have less of it than the
/// system tells.
const MOST_ON_CPU: u64 = 1 << 30;
/// Who looks on is told so often.
const TELL_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy)]
pub(crate) struct BurnRequest {
    /// For how long, from when the first product has been checked.
    pub time: Duration,
    /// The share of the free memory that is filled, from 0 to 1.
    pub memory: f64,
    /// The type of numbers; the usual one where nobody says.
    pub dtype: Option<Dtype>,
}

/// The type of numbers with which a GPU, or without one the CPU, burns: the one that was asked for,
/// or else bf16 where there are tensor cores for that, which load it most, and fp32 elsewhere.
pub(crate) fn dtype_on(device: Option<&Device>, asked: Option<Dtype>) -> Result<Dtype, RunError> {
    let has = device.map(|device| device.capability);
    let usual = if has >= Some(needs(Dtype::Bf16)) {
        Dtype::Bf16
    } else {
        Dtype::Fp32
    };
    let dtype = asked.unwrap_or(usual);
    // What a CPU makes wide first loads it no more.
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
    /// How it goes, once a second.
    Progress {
        /// So much of the time is over, from 0 to 1.
        share: f64,
        operations_per_second: f64,
        /// Words of products that were wrong, since it began.
        wrong: u64,
    },
}

trait Burnable {
    /// Rows of each matrix.
    fn side(&self) -> u64;
    /// Memory that it holds, in bytes.
    fn bytes(&self) -> u64;
    /// What of a product is compared one by one.
    fn words(&self) -> u64;
    /// The kernel that multiplies, where there are several to choose from.
    fn kernel(&self) -> Result<Option<KernelUse>, RunError> {
        Ok(None)
    }
    /// Into how many pieces memory is divided.
    fn pieces(&self) -> usize;
    /// How many products a piece has room for: no more than somebody who interrupts waits for.
    fn products(&self, piece: usize) -> u64;
    /// Makes the product with which the others are compared, and checks it against the reference.
    fn first(&mut self) -> Result<Verification, RunError>;
    /// Fills a piece with products, after comparing its previous ones.
    fn multiply(&mut self, piece: usize, was_filled: bool) -> Result<(), RunError>;
    /// Compares a piece with the first product, and poisons it.
    fn compare(&mut self, piece: usize) -> Result<(), RunError>;
    /// Mismatching words among all that were compared.
    fn wrong(&mut self) -> Result<u64, RunError>;
}

/// Burns for as long as it is asked to, or until somebody sets `interrupted`; all memory is given
/// back when this returns.
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
    // Without the time that the first product took to be checked.
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

/// The sides, of which the first is the largest, that take no more memory than this.
fn fitting(sides: &[u64], bytes: u64, needed: impl Fn(u64) -> u64) -> &[u64] {
    let too_large = sides
        .iter()
        .take_while(|side| needed(**side) > bytes)
        .count();
    &sides[too_large..]
}

#[derive(Debug, Default)]
struct Burnt {
    /// Of one product.
    operations: u64,
    /// Of one product.
    words: u64,
    products: u64,
    /// Of the first product.
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
        // A piece is compared just before it is multiplied again: so its products have lain in
        // memory for as long as can be, and the GPU does nothing for long but multiply. Where it
        // compared all pieces at once, its power went up and down for a second after, at 0.95 of
        // the mean.
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

    /// Of the first product, and of all that were compared with it.
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
