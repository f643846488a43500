//! What goes wrong: the `[[fault]]` and `[returns]` tables and `init_error`.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, Visitor},
};
use toml::Spanned;

use super::{function::Function, quantity::Seconds, settings::lasts};

/// One `[[fault]]` table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FaultSettings {
    /// The GPU it happens to. A hang without one happens to its `call` for any GPU.
    pub(super) gpu: Option<Spanned<u32>>,
    /// What.
    pub(super) kind: Spanned<FaultKind>,
    /// When it begins, in seconds; without it, from the start.
    pub(super) from_s: Option<Spanned<Seconds>>,
    /// When it is over, in seconds; without it, never.
    pub(super) to_s: Option<Spanned<Seconds>>,
    /// The one NVML function that hangs; without it, all that concern the GPU.
    pub(super) call: Option<Spanned<Function>>,
}

/// What happens to a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FaultKind {
    /// It falls off the bus: every call returns `NVML_ERROR_GPU_IS_LOST`.
    Lost,
    /// A call does not come back.
    Hang,
}

impl FaultSettings {
    /// Whether this GPU is lost by it.
    pub(super) fn loses(&self, gpu: u32, seconds: f64) -> bool {
        *self.kind.get_ref() == FaultKind::Lost && self.concerns(Some(gpu)) && self.lasts(seconds)
    }

    /// Whether this call hangs by it. No function means a reading of everything,
    /// which every hang of that GPU blocks.
    pub(super) fn blocks(&self, gpu: Option<u32>, function: Option<&str>, seconds: f64) -> bool {
        let call_hangs = match (&self.call, function) {
            (Some(call), Some(function)) => call.get_ref().0 == function,
            (Some(_), None) => self.gpu.is_some(),
            (None, _) => true,
        };
        *self.kind.get_ref() == FaultKind::Hang && call_hangs && self.concerns(gpu) && self.lasts(seconds)
    }

    fn concerns(&self, gpu: Option<u32>) -> bool {
        self.gpu.as_ref().is_none_or(|own| Some(*own.get_ref()) == gpu)
    }

    fn lasts(&self, seconds: f64) -> bool {
        lasts(self.from_s.as_ref(), self.to_s.as_ref(), seconds)
    }
}

/// `init_error`: initialisation fails.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InitError {
    /// With what.
    code: ReturnCode,
    /// When it works again, in seconds; without it, never.
    to_s: Option<Spanned<Seconds>>,
}

impl InitError {
    pub(super) fn code(&self) -> u32 {
        self.code.0
    }

    pub(super) fn lasts(&self, seconds: f64) -> bool {
        lasts(None, self.to_s.as_ref(), seconds)
    }
}

/// An `nvmlReturn_t` that says that something failed: 1 to 30, or 999.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReturnCode(pub(super) u32);

impl<'de> Deserialize<'de> for ReturnCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Code;
        impl Visitor<'_> for Code {
            type Value = ReturnCode;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an nvmlReturn_t that is an error (1 to 30, or 999), as 3 for NVML_ERROR_NOT_SUPPORTED")
            }

            fn visit_i64<E: de::Error>(self, code: i64) -> Result<ReturnCode, E> {
                match code {
                    1..=30 | 999 => Ok(ReturnCode(code as u32)),
                    _ => Err(E::invalid_value(de::Unexpected::Signed(code), &self)),
                }
            }
        }
        deserializer.deserialize_any(Code)
    }
}
