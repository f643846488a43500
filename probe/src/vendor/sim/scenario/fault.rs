//! Faults: the `[[fault]]` tables, the `[returns]` table, and the `init_error` key.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, Visitor},
};
use toml::Spanned;

use super::{
    function::Function,
    quantity::{Seconds, Skew},
    settings::is_within,
};

/// The settings in a `[[fault]]` table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FaultSettings {
    /// The affected GPU. By default, all GPUs are affected.
    pub(super) gpu: Option<Spanned<u32>>,
    pub(super) kind: Spanned<FaultKind>,
    /// The start of the fault, in seconds. By default, the fault starts with the timeline.
    pub(super) from_s: Option<Spanned<Seconds>>,
    /// The end of the fault, in seconds. By default, the fault never ends.
    pub(super) to_s: Option<Spanned<Seconds>>,
    /// The affected NVML function. By default, all functions about the GPU are affected.
    pub(super) call: Option<Spanned<Function>>,
    pub(super) code: Option<Spanned<ReturnCode>>,
    /// How far the driver's clock is ahead, in seconds.
    pub(super) by_s: Option<Spanned<Skew>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FaultKind {
    /// The GPU falls off the bus. Every call returns `NVML_ERROR_GPU_IS_LOST`.
    Lost,
    Hang,
    /// The driver was replaced after the library was loaded. Every call returns
    /// `NVML_ERROR_LIB_RM_VERSION_MISMATCH`.
    Mismatch,
    Crash,
    /// A function returns an error code. If no function is given, all functions about the GPU
    /// return the code.
    Returns,
    Garbage,
    Backwards,
    /// The driver's timestamps differ from the machine's clock.
    ClockSkew,
}

/// A call: its time, and the GPU and NVML function that it concerns, if any.
#[derive(Debug, Clone, Copy)]
pub(super) struct FaultCall<'a> {
    pub(super) gpu: Option<u32>,
    pub(super) function: Option<&'a str>,
    pub(super) seconds: f64,
}

impl FaultSettings {
    pub(super) fn affects_gpu(&self, kind: FaultKind, gpu: u32, seconds: f64) -> bool {
        *self.kind.get_ref() == kind && self.concerns_gpu(Some(gpu)) && self.is_active(seconds)
    }

    /// Returns `true` if a fault of the given kind affects `call`. A call without a function
    /// represents reading all values, which every call fault of the GPU affects.
    pub(super) fn affects_call(&self, kind: FaultKind, call: FaultCall<'_>) -> bool {
        let this_function = match (&self.call, call.function) {
            (Some(own), Some(function)) => own.get_ref().0 == function,
            (Some(_), None) => self.gpu.is_some(),
            (None, _) => true,
        };
        *self.kind.get_ref() == kind
            && this_function
            && self.concerns_gpu(call.gpu)
            && self.is_active(call.seconds)
    }

    /// Returns `true` if this fault makes all calls about the GPU fail with its code.
    pub(super) fn makes_gpu_fail(&self, gpu: u32, seconds: f64) -> bool {
        self.call.is_none() && self.affects_gpu(FaultKind::Returns, gpu, seconds)
    }

    pub(super) fn begin_s(&self) -> f64 {
        self.from_s.as_ref().map_or(0.0, |from| from.get_ref().0)
    }

    pub(super) fn start_and_end_times(&self) -> impl Iterator<Item = f64> {
        self.from_s
            .iter()
            .chain(&self.to_s)
            .map(|moment| moment.get_ref().0)
    }

    fn concerns_gpu(&self, gpu: Option<u32>) -> bool {
        self.gpu
            .as_ref()
            .is_none_or(|own| Some(*own.get_ref()) == gpu)
    }

    fn is_active(&self, seconds: f64) -> bool {
        is_within(self.from_s.as_ref(), self.to_s.as_ref(), seconds)
    }
}

/// The `init_error` key, which makes the library's initialization fail.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InitError {
    code: ReturnCode,
    /// The time from which initialization succeeds, in seconds. By default, initialization never
    /// succeeds.
    to_s: Option<Spanned<Seconds>>,
}

impl InitError {
    pub(super) fn code(&self) -> u32 {
        self.code.0
    }

    pub(super) fn is_active(&self, seconds: f64) -> bool {
        is_within(None, self.to_s.as_ref(), seconds)
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
                f.write_str(
                    "an nvmlReturn_t that is an error (1 to 30, or 999), such as 3 for \
                     NVML_ERROR_NOT_SUPPORTED",
                )
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
