//! Numbers as a scenario writes them, each checked where it stands so that an error can name the
//! place.

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
/// Watts; no board draws three kilowatts.
pub(crate) type Watts = Within<3_000>;
/// Degrees Celsius; silicon does not live beyond.
pub(crate) type Celsius = Within<150>;
/// Seconds since the start of the timeline; about 30 years are enough.
pub(crate) type Seconds = Within<1_000_000_000>;

pub(crate) type Count = Within<1_000_000_000>;
pub(crate) type Lanes = Within<16>;
/// Megahertz; no more than an H200 has.
pub(crate) type Megahertz = Within<MAX_SM_MHZ>;

/// Seconds that a clock is ahead, or below 0 behind; up to a day.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Skew(pub(crate) f64);

/// A size, written with its unit: `"12 GiB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) u64);

/// A duration, written with its unit: `"2.8 ms"`.
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

/// The largest size that makes sense on one board is 16 TiB.
const SIZE: Accepted<u64> = Accepted::accept_sizes(
    0,
    16 << 40,
    "a size up to 16384 GiB with its unit, as \"12 GiB\"",
);

/// A longer delay is a hang, for which there is a fault of its own.
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
