//! Conversion of the driver's answers to the model. The functions are pure: they convert units,
//! combine answers, and turn return codes into reasons.

#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )
)]

mod board;
mod details;
mod ecc;
mod links;
mod mig;
mod processes;
mod sample;
#[cfg(test)]
mod tests;

pub(super) use board::{board, identity};
pub(super) use details::details;
pub(super) use links::{DATA_UNIT_BYTES, has_no_links, remote};
pub(super) use mig::{mig_device, mig_mode, mig_sample};
pub(super) use processes::{listed, processes};
pub(super) use sample::sample;

use crate::{model::Reading, vendor::nvml::query::Query};

use super::cached::Answers;

fn watts(answers: Answers<'_>, query: Query) -> Reading<f64> {
    answers
        .number(query)
        .map(|milliwatts| milliwatts as f64 / 1000.0)
}

fn small(answers: Answers<'_>, query: Query) -> Reading<u32> {
    answers.whole(query)
}
