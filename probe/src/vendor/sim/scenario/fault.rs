//! Faults: the `[[fault]]` and `[returns]` tables and `init_error`.

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

/// The keys of a `[[fault]]` table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FaultSettings {
    /// The affected GPU. The default is all GPUs.
    pub(super) gpu: Option<Spanned<u32>>,
    pub(super) kind: Spanned<FaultKind>,
    /// The start of the fault, in seconds. The default is the start of the timeline.
    pub(super) from_s: Option<Spanned<Seconds>>,
    /// The end of the fault, in seconds. By default, the fault never ends.
    pub(super) to_s: Option<Spanned<Seconds>>,
    /// The affected NVML function. The default is all functions about the GPU.
    pub(super) call: Option<Spanned<Function>>,
    pub(super) code: Option<Spanned<ReturnCode>>,
    /// The time by which the driver's clock is ahead.
    pub(super) by_s: Option<Spanned<Skew>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FaultKind {
    /// The GPU falls off the bus. Every call returns `NVML_ERROR_GPU_IS_LOST`.
    Lost,
    Hang,
    /// The driver was replaced while the library was loaded. Every call returns
    /// `NVML_ERROR_LIB_RM_VERSION_MISMATCH`.
    Mismatch,
    Crash,
    /// A function returns an error code. Without a function, all functions about the GPU return it.
    Returns,
    Garbage,
    Backwards,
    /// The driver's timestamps differ from the machine's time.
    ClockSkew,
}

/// A call: its GPU if it concerns one, its NVML function if there is one, and its time.
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

    /// Returns `true` if a fault of this kind affects a call. A call without a function stands for
    /// a reading of all values, which is affected by all call faults of the GPU.
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

/// The `init_error` key, which makes initialization fail.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InitError {
    code: ReturnCode,
    /// The time from which initialization succeeds, in seconds. By default, it never does.
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

/// An `nvmlReturn_t` that is an error: 1 to 30, or 999.
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
