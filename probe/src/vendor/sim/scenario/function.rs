//! Names of NVML functions in scenarios, which can be keys or values.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, Visitor},
};

use super::super::FUNCTIONS;
use crate::toml_error::suggest_word;

/// The name of an NVML function that the fake library exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Function(pub(crate) &'static str);

/// A key in `[latency]`: the name of a function, or `default` for all other functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LatencyKey(&'static str);

impl LatencyKey {
    pub(crate) const DEFAULT: Self = Self("default");

    pub(crate) fn matches(self, function: &str) -> bool {
        self.0 == function
    }

    fn parse(name: &str) -> Result<Self, String> {
        if name == Self::DEFAULT.0 {
            Ok(Self::DEFAULT)
        } else {
            Function::parse(name).map(|function| Self(function.0))
        }
    }
}

impl Function {
    pub(super) fn parse(name: &str) -> Result<Self, String> {
        FUNCTIONS
            .iter()
            .find(|known| **known == name)
            .map(|known| Self(known))
            .ok_or_else(|| {
                let cure = match suggest_word(name, FUNCTIONS) {
                    near if near.starts_with("did you mean") => near,
                    _ => "use one that gpumon's fake NVML exports, such as nvmlDeviceGetPowerUsage"
                        .to_owned(),
                };
                format!("unknown NVML function `{name}`; {cure}")
            })
    }
}

/// A visitor that parses a name. Errors from a visitor include the position in the file; later
/// errors would not.
struct NameVisitor<T>(fn(&str) -> Result<T, String>);

impl<T> Visitor<'_> for NameVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of an NVML function, such as \"nvmlDeviceGetPowerUsage\"")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<T, E> {
        (self.0)(name).map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for Function {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor(Self::parse))
    }
}

impl<'de> Deserialize<'de> for LatencyKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor(Self::parse))
    }
}
