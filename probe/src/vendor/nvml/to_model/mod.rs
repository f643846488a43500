//! Conversion of the driver's answers to the model. All functions are pure: they convert units,
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

pub(super) use board::{make_board, make_identity};
pub(super) use details::fill_details;
pub(super) use links::{DATA_UNIT_BYTES, has_no_links, to_remote_kind};
pub(super) use mig::{make_mig_device, make_mig_sample, mig_mode};
pub(super) use processes::{list_processes, make_processes};
pub(super) use sample::fill_sample;

use crate::{model::Reading, vendor::nvml::query::Query};

use super::cached::TimedAnswers;

fn read_watts(answers: TimedAnswers<'_>, query: Query) -> Reading<f64> {
    answers
        .read_number(query)
        .map(|milliwatts| milliwatts as f64 / 1000.0)
}

fn read_u32(answers: TimedAnswers<'_>, query: Query) -> Reading<u32> {
    answers.read_integer(query)
}
