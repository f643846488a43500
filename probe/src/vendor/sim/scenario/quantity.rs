//! Numbers in scenarios. They are validated while they are parsed, so that errors contain the
//! position.

use std::{fmt, time::Duration};

use serde::{
    Deserialize, Deserializer,
    de::{self, Visitor},
};

use crate::{units::AcceptedAmounts, vendor::sim::clocks::MAX_SM_MHZ};

/// A number from 0 to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BoundedNumber<const MAX: u32>(pub(crate) f64);

pub(crate) type Percent = BoundedNumber<100>;
/// A power in watts. The maximum of 3 kW is more than any board draws.
pub(crate) type Watts = BoundedNumber<3_000>;
/// A temperature in degrees Celsius. The maximum is higher than any chip tolerates.
pub(crate) type Celsius = BoundedNumber<150>;
/// A time in seconds since the start of the timeline. The maximum is about 30 years.
pub(crate) type Seconds = BoundedNumber<1_000_000_000>;

pub(crate) type Count = BoundedNumber<1_000_000_000>;
pub(crate) type Lanes = BoundedNumber<16>;
/// A clock in megahertz. The maximum is that of an H200.
pub(crate) type Megahertz = BoundedNumber<MAX_SM_MHZ>;

/// How far a clock is ahead, in seconds, up to one day. The value is negative if the clock is
/// behind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Skew(pub(crate) f64);

/// A size with a unit, for example `"12 GiB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) u64);

/// A duration with a unit, for example `"2.8 ms"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delay(pub(crate) Duration);

impl<const MAX: u32> From<BoundedNumber<MAX>> for f64 {
    fn from(number: BoundedNumber<MAX>) -> Self {
        number.0
    }
}

impl From<Bytes> for f64 {
    fn from(bytes: Bytes) -> Self {
        bytes.0 as f64
    }
}

/// The accepted range of sizes. The maximum of 16 TiB is more than any board has.
const ACCEPTED_SIZES: AcceptedAmounts<u64> = AcceptedAmounts::accept_sizes(
    0,
    16 << 40,
    "a size up to 16384 GiB with its unit, such as \"12 GiB\"",
);

/// The accepted range of delays. For longer delays, scenarios should use the `hang` fault.
const ACCEPTED_DELAYS: AcceptedAmounts<Duration> = AcceptedAmounts::accept_durations(
    Duration::ZERO,
    Duration::from_mins(10),
    "a duration up to 600 s with its unit, such as \"2.8 ms\"",
);

impl<'de, const MAX: u32> Deserialize<'de> for BoundedNumber<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number<const MAX: u32>;
        impl<const MAX: u32> Visitor<'_> for Number<MAX> {
            type Value = BoundedNumber<MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a number from 0 to {MAX}")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
                if (0..=i64::from(MAX)).contains(&number) {
                    Ok(BoundedNumber(number as f64))
                } else {
                    Err(E::invalid_value(de::Unexpected::Signed(number), &self))
                }
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
                self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self::Value, E> {
                if (0.0..=f64::from(MAX)).contains(&number) {
                    Ok(BoundedNumber(number))
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
                f.write_str("seconds from -86400 to 86400, such as 3.5 for a clock that is ahead")
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
        ACCEPTED_SIZES.deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for Delay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ACCEPTED_DELAYS.deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_durations_need_their_unit() {
        assert_eq!(ACCEPTED_SIZES.parse("12 GiB"), Ok(12 << 30));
        assert_eq!(ACCEPTED_SIZES.parse("0.5MiB"), Ok(512 << 10));
        assert_eq!(
            ACCEPTED_DELAYS.parse("2.8 ms"),
            Ok(Duration::from_micros(2_800))
        );
        assert_eq!(
            ACCEPTED_DELAYS.parse("20 us"),
            Ok(Duration::from_micros(20))
        );
        for bad in ["12", "GiB", "-1 GiB", "NaN GiB", "20000 GiB"] {
            assert!(ACCEPTED_SIZES.parse(bad).is_err(), "{bad}");
        }
        for bad in ["5", "-5 ms", "601 s"] {
            assert!(ACCEPTED_DELAYS.parse(bad).is_err(), "{bad}");
        }
    }
}
