//! Values in scenarios, which are constant or change over time. Numbers are validated while they
//! are parsed, so that errors contain the position.

use std::{fmt, marker::PhantomData, time::Duration};

use serde::{
    Deserialize, Deserializer,
    de::{self, IntoDeserializer, SeqAccess, Visitor},
};

use crate::{units::AcceptedAmounts, vendor::sim::hardware::MAX_SM_MHZ};

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

/// A value that is constant or changes linearly between key frames.
///
/// In TOML, the value is either a single number or `[[seconds, value], ...]` in chronological
/// order. The first value also applies before the first key frame, and the last value after the
/// last key frame. Two key frames at the same time make the value jump.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Curve<V> {
    /// The key frames as times and values, with at least one entry. Times are in seconds since the
    /// start.
    points: Vec<(f64, f64)>,
    unit: PhantomData<V>,
}

impl<V: Into<f64>> Curve<V> {
    pub(crate) fn value_at(&self, seconds: f64) -> f64 {
        let after = self.points.partition_point(|(time, _)| *time <= seconds);
        match (
            after.checked_sub(1).map(|before| self.points[before]),
            self.points.get(after),
        ) {
            (Some((t0, v0)), Some((t1, v1))) => v0 + (v1 - v0) * (seconds - t0) / (t1 - t0),
            (Some((_, last)), None) => last,
            (None, first) => first.map_or(0.0, |(_, value)| *value),
        }
    }

    fn constant(value: V) -> Self {
        Self {
            points: vec![(0.0, value.into())],
            unit: PhantomData,
        }
    }
}

/// Returns the value of a curve, or 0 if the scenario does not set the curve.
pub(crate) fn value_or_zero<V: Into<f64>>(curve: Option<&Curve<V>>, seconds: f64) -> f64 {
    curve.map_or(0.0, |curve| curve.value_at(seconds))
}

impl<'de, V: Deserialize<'de> + Into<f64>> Deserialize<'de> for Curve<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CurveVisitor(PhantomData))
    }
}

/// Returns the error for a key frame at the time `next` that is listed after one at `before`.
fn unsorted_error<E: de::Error>(before: f64, next: f64) -> E {
    E::custom(format!(
        "the key frame at {next} s is listed after the key frame at {before} s; sort the key \
         frames by time"
    ))
}

struct CurveVisitor<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de> + Into<f64>> Visitor<'de> for CurveVisitor<V> {
    type Value = Curve<V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one value, or key frames in the form [[seconds, value], ...]")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
        V::deserialize(value.into_deserializer()).map(Curve::constant)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
        V::deserialize(value.into_deserializer()).map(Curve::constant)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Self::Value, E> {
        V::deserialize(value.into_deserializer()).map(Curve::constant)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        let mut points: Vec<(f64, f64)> = Vec::new();
        while let Some((BoundedNumber(time), value)) = sequence.next_element::<(Seconds, V)>()? {
            if let Some((before, _)) = points.last().filter(|(before, _)| *before > time) {
                return Err(unsorted_error(*before, time));
            }
            points.push((time, value.into()));
        }
        if points.is_empty() {
            return Err(de::Error::custom(
                "there are no key frames; write at least one, such as [[0, 20]]",
            ));
        }
        Ok(Curve {
            points,
            unit: PhantomData,
        })
    }
}

/// A value that is constant or changes in steps at key frames.
///
/// In TOML, the value is either a single value or `[[seconds, value], ...]` in chronological order.
/// The first value also applies before the first key frame.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Steps<T> {
    /// The key frames, with at least one entry. Each value applies from its time on, in seconds
    /// since the start.
    frames: Vec<(f64, T)>,
}

impl<T> Steps<T> {
    pub(crate) fn value_at(&self, seconds: f64) -> &T {
        let after = self.frames.partition_point(|(time, _)| *time <= seconds);
        &self.frames[after.saturating_sub(1)].1
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.frames.iter().map(|(_, value)| value)
    }
}

/// The value as it appears in the file. If `T` is a list, an empty list is parsed as a fixed value.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "this is neither a value for this key nor key frames in the form [[seconds, \
                 value], ...]; tests/fake-nvml/scenarios/example.toml shows both"
)]
enum StepsInput<T> {
    Fixed(T),
    Frames(Vec<(Seconds, T)>),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Steps<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let frames = match StepsInput::deserialize(deserializer)? {
            StepsInput::Fixed(value) => vec![(0.0, value)],
            StepsInput::Frames(frames) => frames
                .into_iter()
                .map(|(time, value)| (time.0, value))
                .collect(),
        };
        if frames.is_empty() {
            return Err(de::Error::custom(
                "there are no key frames; write at least one, such as [[0, value]]",
            ));
        }
        if let Some(pair) = frames.windows(2).find(|pair| pair[0].0 > pair[1].0) {
            return Err(unsorted_error(pair[0].0, pair[1].0));
        }
        Ok(Self { frames })
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

#[cfg(test)]
mod curve_tests {
    use super::*;

    fn parse_percent(toml: &str) -> Curve<Percent> {
        #[derive(Deserialize)]
        struct Document {
            curve: Curve<Percent>,
        }
        toml::from_str::<Document>(&format!("curve = {toml}"))
            .unwrap()
            .curve
    }

    #[test]
    fn values_are_interpolated_between_key_frames() {
        let curve = parse_percent("[[10, 20], [20, 40.5], [20, 90], [30, 80]]");
        let expected = [
            (0.0, 20.0),
            (10.0, 20.0),
            (15.0, 30.25),
            (20.0, 90.0),
            (25.0, 85.0),
            (1e6, 80.0),
        ];
        for (seconds, value) in expected {
            assert!(
                (curve.value_at(seconds) - value).abs() < 1e-9,
                "{seconds} s: {}",
                curve.value_at(seconds)
            );
        }
    }

    #[test]
    fn value_without_key_frames_is_constant() {
        assert!((parse_percent("35").value_at(0.0) - 35.0).abs() < 1e-9);
        assert!((parse_percent("35.5").value_at(9.0) - 35.5).abs() < 1e-9);
        assert!((Curve::constant(Bytes(1 << 30)).value_at(1.0) - f64::from(1 << 30)).abs() < 1e-9);
    }
}

#[cfg(test)]
mod steps_tests {
    use super::*;

    #[derive(Deserialize)]
    struct Document {
        lists: Steps<Vec<u32>>,
    }

    fn read(toml: &str) -> Result<Steps<Vec<u32>>, toml::de::Error> {
        toml::from_str::<Document>(&format!("lists = {toml}")).map(|document| document.lists)
    }

    #[test]
    fn value_applies_until_next_key_frame() {
        let steps = read("[[5, []], [10, [1, 2]], [20, [3]]]").unwrap();
        assert_eq!(
            [0.0, 9.9, 10.0, 19.9, 99.0].map(|s| steps.value_at(s).len()),
            [0, 0, 2, 2, 1]
        );
        assert_eq!(steps.values().map(Vec::len).collect::<Vec<_>>(), [0, 2, 1]);
    }

    #[test]
    fn list_without_key_frames_is_constant() {
        assert_eq!(read("[7, 8]").unwrap().value_at(3.0), &[7, 8]);
        assert_eq!(read("[]").unwrap().value_at(3.0), &Vec::<u32>::new());
    }

    #[test]
    fn invalid_values_are_rejected() {
        assert!(read("\"x\"").unwrap_err().message().contains("neither"));
        assert!(
            read("[[9, []], [3, []]]")
                .unwrap_err()
                .message()
                .contains("sort the key frames by time")
        );
    }
}
