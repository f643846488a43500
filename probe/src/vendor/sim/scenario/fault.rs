//! What goes wrong: the `[[fault]]` and `[returns]` tables and `init_error`.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, Visitor},
};
use toml::Spanned;

use super::{
    function::Function,
    quantity::{Seconds, Skew},
    settings::lasts,
};

/// One `[[fault]]` table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FaultSettings {
    /// The GPU it happens to; without it, any.
    pub(super) gpu: Option<Spanned<u32>>,
    pub(super) kind: Spanned<FaultKind>,
    /// When it begins, in seconds; without it, from the start.
    pub(super) from_s: Option<Spanned<Seconds>>,
    /// When it is over, in seconds; without it, never.
    pub(super) to_s: Option<Spanned<Seconds>>,
    /// The one NVML function that it happens to; without it, all that concern the GPU.
    pub(super) call: Option<Spanned<Function>>,
    pub(super) code: Option<Spanned<ReturnCode>>,
    /// How far the driver's clock is ahead.
    pub(super) by_s: Option<Spanned<Skew>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FaultKind {
    /// A GPU falls off the bus: every call returns `NVML_ERROR_GPU_IS_LOST`.
    Lost,
    Hang,
    /// The driver was replaced underneath: every call returns `NVML_ERROR_LIB_RM_VERSION_MISMATCH`.
    Mismatch,
    Crash,
    /// One function returns a code. Without a function, all functions that concern the GPU return
    /// it.
    Returns,
    Garbage,
    Backwards,
    /// The driver's time stamps are of another time than the machine's.
    ClockSkew,
}

/// Where a call is made: for a GPU, where it concerns one, and of this NVML function, where one is
/// named.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) gpu: Option<u32>,
    pub(super) function: Option<&'a str>,
    pub(super) seconds: f64,
}

impl FaultSettings {
    pub(super) fn affects_gpu(&self, kind: FaultKind, gpu: u32, seconds: f64) -> bool {
        *self.kind.get_ref() == kind && self.concerns(Some(gpu)) && self.lasts(seconds)
    }

    /// Whether a fault of this kind affects a call. Without a function, the call stands for a
    /// reading of everything, which every call fault of that GPU affects.
    pub(super) fn affects_call(&self, kind: FaultKind, call: Call<'_>) -> bool {
        let this_function = match (&self.call, call.function) {
            (Some(own), Some(function)) => own.get_ref().0 == function,
            (Some(_), None) => self.gpu.is_some(),
            (None, _) => true,
        };
        *self.kind.get_ref() == kind
            && this_function
            && self.concerns(call.gpu)
            && self.lasts(call.seconds)
    }

    /// Returns `true` if all calls about this GPU fail with the code of this fault.
    pub(super) fn fails_gpu(&self, gpu: u32, seconds: f64) -> bool {
        self.call.is_none() && self.affects_gpu(FaultKind::Returns, gpu, seconds)
    }

    pub(super) fn begin_s(&self) -> f64 {
        self.from_s.as_ref().map_or(0.0, |from| from.get_ref().0)
    }

    pub(super) fn moments(&self) -> impl Iterator<Item = f64> {
        self.from_s
            .iter()
            .chain(&self.to_s)
            .map(|moment| moment.get_ref().0)
    }

    fn concerns(&self, gpu: Option<u32>) -> bool {
        self.gpu
            .as_ref()
            .is_none_or(|own| Some(*own.get_ref()) == gpu)
    }

    fn lasts(&self, seconds: f64) -> bool {
        lasts(self.from_s.as_ref(), self.to_s.as_ref(), seconds)
    }
}

/// `init_error`: initialization fails.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InitError {
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
