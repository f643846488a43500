//! Parsing of samples such as `[1700000000.123, "0.25"]`, which are a time and a value.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error, SeqAccess, Visitor},
};

/// A JSON string that is borrowed unless it contains escapes.
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Of;
        impl<'de> Visitor<'de> for Of {
            type Value = Text<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Of)
    }
}

pub(super) struct Sample(pub(super) (f64, f64));

impl<'de> Deserialize<'de> for Sample {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Of;
        impl<'de> Visitor<'de> for Of {
            type Value = Sample;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a time and a value")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let missing = || A::Error::custom("a sample is incomplete");
                let at: f64 = list.next_element()?.ok_or_else(missing)?;
                let Text(value) = list.next_element()?.ok_or_else(missing)?;
                // Prometheus writes infinity as `+Inf` or `-Inf`, which Rust's parser accepts.
                let value = value
                    .parse()
                    .map_err(|_| A::Error::custom("a value is not a number"))?;
                Ok(Sample((at, value)))
            }
        }
        deserializer.deserialize_seq(Of)
    }
}
