//! Numbers in scenarios. They are checked while they are parsed, so that errors have a position.

use std::{fmt, time::Duration};

use serde::{
    Deserialize, Deserializer,
    de::{self, Visitor},
};

use crate::{units::Accepted, vendor::sim::clocks::MAX_SM_MHZ};

/// A number from 0 to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Within<const MAX: u32>(pub(crate) f64);

pub(crate) type Percent = Within<100>;
/// A power in watts. No board draws three kilowatts.
pub(crate) type Watts = Within<3_000>;
/// A temperature in degrees Celsius. No chip works above the limit.
pub(crate) type Celsius = Within<150>;
/// A time in seconds since the start of the timeline, up to about 30 years.
pub(crate) type Seconds = Within<1_000_000_000>;

pub(crate) type Count = Within<1_000_000_000>;
pub(crate) type Lanes = Within<16>;
/// A clock in megahertz, up to the maximum of an H200.
pub(crate) type Megahertz = Within<MAX_SM_MHZ>;

/// The time in seconds by which a clock is ahead, or behind if negative. At most one day.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Skew(pub(crate) f64);

/// A size with a unit, for example `"12 GiB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) u64);

/// A duration with a unit, for example `"2.8 ms"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delay(pub(crate) Duration);

impl<const MAX: u32> From<Within<MAX>> for f64 {
    fn from(number: Within<MAX>) -> Self {
        number.0
    }
}

impl From<Bytes> for f64 {
    fn from(bytes: Bytes) -> Self {
        bytes.0 as f64
    }
}

/// The accepted sizes. The maximum of 16 TiB is more than any board has.
const SIZE: Accepted<u64> = Accepted::accept_sizes(
    0,
    16 << 40,
    "a size up to 16384 GiB with its unit, as \"12 GiB\"",
);

/// The accepted delays. Longer ones should be simulated by the `hang` fault.
const DELAY: Accepted<Duration> = Accepted::accept_durations(
    Duration::ZERO,
    Duration::from_mins(10),
    "a duration up to 600 s with its unit, as \"2.8 ms\"",
);

impl<'de, const MAX: u32> Deserialize<'de> for Within<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number<const MAX: u32>;
        impl<const MAX: u32> Visitor<'_> for Number<MAX> {
            type Value = Within<MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a number from 0 to {MAX}")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
                if (0..=i64::from(MAX)).contains(&number) {
                    Ok(Within(number as f64))
                } else {
                    Err(E::invalid_value(de::Unexpected::Signed(number), &self))
                }
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
                self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self::Value, E> {
                if (0.0..=f64::from(MAX)).contains(&number) {
                    Ok(Within(number))
                } else {
                    Err(E::invalid_value(de::Unexpected::Float(number), &self))
                }
            }
        }
        deserializer.deserialize_any(Number::<MAX>)
    }
}

impl<'de> Deserialize<'de> for Skew {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Skew;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("seconds from -86400 to 86400, as 3.5 for a clock that is ahead")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Skew, E> {
                self.visit_f64(number as f64)
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Skew, E> {
                if number.abs() <= 86_400.0 {
                    Ok(Skew(number))
                } else {
                    Err(E::invalid_value(de::Unexpected::Float(number), &self))
                }
            }
        }
        deserializer.deserialize_any(Number)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        SIZE.deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for Delay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        DELAY.deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_durations_need_their_unit() {
        assert_eq!(SIZE.parse("12 GiB"), Ok(12 << 30));
        assert_eq!(SIZE.parse("0.5MiB"), Ok(512 << 10));
        assert_eq!(DELAY.parse("2.8 ms"), Ok(Duration::from_micros(2_800)));
        assert_eq!(DELAY.parse("20 us"), Ok(Duration::from_micros(20)));
        for bad in ["12", "GiB", "-1 GiB", "NaN GiB", "20000 GiB"] {
            assert!(SIZE.parse(bad).is_err(), "{bad}");
        }
        for bad in ["5", "-5 ms", "601 s"] {
            assert!(DELAY.parse(bad).is_err(), "{bad}");
        }
    }
}
