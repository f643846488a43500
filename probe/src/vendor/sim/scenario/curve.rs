//! Values that change over time.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{self, IntoDeserializer, SeqAccess, Visitor},
};

use super::quantity::{BoundedNumber, Seconds};

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

impl<'de, V: Deserialize<'de> + Into<f64>> Deserialize<'de> for Curve<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CurveVisitor(PhantomData))
    }
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
                return Err(de::Error::custom(format!(
                    "the key frame at {time} s is listed after the key frame at {before} s; sort \
                     the key frames by time"
                )));
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

#[cfg(test)]
mod tests {
    use super::super::quantity::{Bytes, Percent};
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
    fn single_value_is_constant() {
        assert!((parse_percent("35").value_at(0.0) - 35.0).abs() < 1e-9);
        assert!((parse_percent("35.5").value_at(9.0) - 35.5).abs() < 1e-9);
        assert!((Curve::constant(Bytes(1 << 30)).value_at(1.0) - f64::from(1 << 30)).abs() < 1e-9);
    }
}
