//! Decoding of readings, whose format is recognized by the first JSON key.
//!
//! The code that serde derives for an untagged enum copies every value and tries one format after
//! another. A server that receives lines with a thousand readings would spend most of its time on
//! that.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeSeed, Error, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor,
        value::{BorrowedStrDeserializer, MapAccessDeserializer, SeqAccessDeserializer},
    },
};

use super::{Absence, Reading};

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Reading<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ReadingVisitor(PhantomData))
    }
}

struct ReadingVisitor<T>(PhantomData<T>);

/// Defines visitor methods for a plain value, which is decoded as [`Reading::Now`].
macro_rules! visit_bare {
    ($($visit:ident: $type:ty),*) => {$(
        fn $visit<E: Error>(self, value: $type) -> Result<Self::Value, E> {
            T::deserialize(value.into_deserializer()).map(Reading::Now)
        }
    )*};
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for ReadingVisitor<T> {
    type Value = Reading<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, a value with its time, or the reason why there is none")
    }

    visit_bare!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str, visit_string: String);

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<Self::Value, E> {
        T::deserialize(BorrowedStrDeserializer::new(value)).map(Reading::Now)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        T::deserialize(SeqAccessDeserializer::new(items)).map(Reading::Now)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        match map.next_key::<ReadingKey>()? {
            Some(ReadingKey::Absent) => {
                let absence = MapWithFirstKey {
                    first: Some(Cow::Borrowed("absent")),
                    rest: map,
                };
                Absence::deserialize(MapAccessDeserializer::new(absence)).map(Reading::Absent)
            }
            Some(key @ (ReadingKey::Value | ReadingKey::AtMs)) => read_dated_value(key, map),
            Some(ReadingKey::Other(first)) => {
                let value = MapWithFirstKey {
                    first: Some(Cow::Owned(first)),
                    rest: map,
                };
                T::deserialize(MapAccessDeserializer::new(value)).map(Reading::Now)
            }
            None => Err(A::Error::invalid_value(Unexpected::Map, &self)),
        }
    }
}

/// Reads the rest of `{"value": …, "at_ms": …}` after its first key.
fn read_dated_value<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    first: ReadingKey,
    mut map: A,
) -> Result<Reading<T>, A::Error> {
    let (mut value, mut at_ms) = (None, None);
    let mut key = Some(first);
    while let Some(known) = key {
        match known {
            ReadingKey::Value => value = Some(map.next_value()?),
            ReadingKey::AtMs => at_ms = Some(map.next_value()?),
            ReadingKey::Absent => {
                return Err(A::Error::unknown_field("absent", &["value", "at_ms"]));
            }
            ReadingKey::Other(name) => {
                return Err(A::Error::unknown_field(&name, &["value", "at_ms"]));
            }
        }
        key = map.next_key()?;
    }
    Ok(Reading::Earlier {
        value: value.ok_or_else(|| A::Error::missing_field("value"))?,
        at_ms: at_ms.ok_or_else(|| A::Error::missing_field("at_ms"))?,
    })
}

/// A key that distinguishes the JSON formats of a reading. No value type is serialized as an object
/// that starts with one of the named keys.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum ReadingKey {
    Absent,
    Value,
    AtMs,
    Other(String),
}

/// A JSON object whose first key has already been read.
struct MapWithFirstKey<A> {
    first: Option<Cow<'static, str>>,
    rest: A,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for MapWithFirstKey<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        match self.first.take() {
            Some(first) => seed.deserialize(first.into_deserializer()).map(Some),
            None => self.rest.next_key_seed(seed),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.rest.next_value_seed(seed)
    }
}
