//! Readings and their JSON format. A reading consists of a value and its time, or of the reason why
//! there is no value.

use std::{borrow::Cow, fmt, marker::PhantomData};

use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{
        DeserializeSeed, Error, IntoDeserializer, MapAccess, SeqAccess, Unexpected, Visitor,
        value::{BorrowedStrDeserializer, MapAccessDeserializer, SeqAccessDeserializer},
    },
};
use ts_rs::TS;

/// The reading of one quantity: a value, or the reason for its absence. A missing value is never
/// replaced by 0.
///
/// In JSON, a value read at the time of its sample is plain (`64`), an older value includes its
/// time (`{"value": 64, "at_ms": 1763630000000}`), and a missing value includes the reason
/// (`{"absent": "not_supported"}`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, TS, JsonSchema)]
#[serde(untagged)]
pub enum Reading<T> {
    /// A value that was read before its sample, because it is read less often, or because it is the
    /// last known value.
    Earlier {
        /// The value that was read.
        value: T,
        /// The time at which the value was read.
        at_ms: u64,
    },
    /// No value, with the reason.
    Absent(Absence),
    /// A value that was read at the `at_ms` of the GPU or host sample that contains it.
    Now(T),
}

/// The reason why a reading has no value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(tag = "absent", rename_all = "snake_case")]
pub enum Absence {
    /// The device or driver does not support the reading (`NVML_ERROR_NOT_SUPPORTED`, or the symbol
    /// is not in the library).
    NotSupported,
    /// The driver does not allow this user to read the value (`NVML_ERROR_NO_PERMISSION`).
    NoPermission,
    /// The GPU has fallen off the bus (`NVML_ERROR_GPU_IS_LOST`).
    GpuLost,
    /// The system has switched the GPU off to save power, and reading the value would wake it.
    Asleep,
    /// The driver has not answered the call yet.
    NoAnswer,
    /// The value is still being determined. If the files of a process cannot be read, this remains
    /// the reason.
    NotReadYet,
    /// The value needs two samples, and only one has been taken so far.
    WarmingUp,
    /// The driver lists the reading, but does not know the value (NVML's "not available" values).
    Unknown,
    /// The process is not in `/proc`: it has ended, or runs in another PID namespace.
    NotInProc,
    /// The process has ended, although the driver still lists it, or is a zombie that its parent
    /// has not reaped.
    Ended,
    /// The value belongs to another user and is hidden.
    Hidden,
    /// The hardware has reported a fatal error, after which the driver's values are invalid until a
    /// reset.
    Distrusted,
    /// The machine is read through nvidia-smi's CSV output, which does not contain the value.
    /// gpumon on that machine would report the value.
    NeedsGpumon,
    /// The driver failed with the `nvmlReturn_t` given in `code`.
    DriverError {
        /// NVML's return code.
        code: u32,
    },
}

impl<T> Reading<T> {
    /// The reading of a quantity that the hardware or the driver does not support.
    pub const NOT_SUPPORTED: Self = Self::Absent(Absence::NotSupported);

    /// Returns `true` if the hardware or the driver does not support the quantity.
    pub fn is_not_supported(&self) -> bool {
        matches!(self, Self::Absent(Absence::NotSupported))
    }

    /// Returns the value regardless of its age.
    ///
    /// # Errors
    /// Returns the reason for the absence if there is no value.
    pub fn as_result(&self) -> Result<&T, &Absence> {
        match self {
            Self::Now(value) | Self::Earlier { value, .. } => Ok(value),
            Self::Absent(reason) => Err(reason),
        }
    }

    /// Returns the value regardless of its age, or `None` if it is absent.
    pub fn value(&self) -> Option<&T> {
        self.as_result().ok()
    }

    /// Returns a mutable reference to the value, or `None` if it is absent.
    pub fn value_mut(&mut self) -> Option<&mut T> {
        match self {
            Self::Now(value) | Self::Earlier { value, .. } => Some(value),
            Self::Absent(_) => None,
        }
    }

    /// Returns the reason for the absence, or `None` if there is a value.
    pub fn absence(&self) -> Option<&Absence> {
        self.as_result().err()
    }

    /// Returns the time of the reading. `sample_at_ms` is the time of the sample that contains the
    /// reading.
    pub fn read_at_ms(&self, sample_at_ms: u64) -> u64 {
        match self {
            Self::Earlier { at_ms, .. } => *at_ms,
            Self::Now(_) | Self::Absent(_) => sample_at_ms,
        }
    }

    /// Returns the time of the reading if the reading is older than its sample.
    pub fn earlier_ms(&self) -> Option<u64> {
        match self {
            Self::Earlier { at_ms, .. } => Some(*at_ms),
            Self::Now(_) | Self::Absent(_) => None,
        }
    }

    /// Returns the reading for use in a later sample: a value without a time gets the time `at_ms`.
    #[must_use]
    pub fn with_time(self, at_ms: u64) -> Self {
        match self {
            Self::Now(value) => Self::Earlier { value, at_ms },
            dated => dated,
        }
    }

    /// Converts the value with a function, and keeps its time or the reason for its absence.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Self::Now(value) => Reading::Now(change(value)),
            Self::Earlier { value, at_ms } => Reading::Earlier {
                value: change(value),
                at_ms,
            },
            Self::Absent(reason) => Reading::Absent(reason),
        }
    }
}

impl<T> Reading<Vec<T>> {
    /// Returns the items of a list regardless of its age. An absent list has none.
    pub fn items(&self) -> &[T] {
        self.value().map_or(&[], Vec::as_slice)
    }
}

impl<T> Default for Reading<T> {
    /// Returns [`Self::NOT_SUPPORTED`], for quantities that earlier versions did not write.
    fn default() -> Self {
        Self::NOT_SUPPORTED
    }
}

/// Types whose readings can all be absent.
pub(crate) trait Absent {
    /// Returns a value whose readings are all absent for the given reason.
    fn new_absent(reason: &Absence) -> Self;
}

impl<T> Absent for Reading<T> {
    fn new_absent(reason: &Absence) -> Self {
        Self::Absent(reason.clone())
    }
}

/// Implements [`Absent`] for structures of readings. Most hardware lacks the fields after a
/// semicolon, so their reason is always "not supported". With a reason as the first argument, the
/// macro instead creates a value in which some fields are known and the others are absent.
macro_rules! absent {
    ($($type:ident { $($field:ident),+ $(; $($lacking:ident),+)? })+) => {$(
        impl $crate::model::Absent for $type {
            fn new_absent(reason: &$crate::model::Absence) -> Self {
                $type {
                    $($field: $crate::model::Absent::new_absent(reason),)+
                    $($($lacking: $crate::model::Reading::NOT_SUPPORTED),+)?
                }
            }
        }
    )+};
    ($reason:expr; $type:ident { $($known:ident),* }; $($field:ident),+) => {
        $type { $($known,)* $($field: $crate::model::Absent::new_absent($reason)),+ }
    };
}

pub(crate) use absent;

impl<T> From<Result<T, Absence>> for Reading<T> {
    fn from(result: Result<T, Absence>) -> Self {
        result.map_or_else(Self::Absent, Self::Now)
    }
}

impl fmt::Display for Absence {
    /// Writes the reason as text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSupported => f.write_str("not supported by this board or driver"),
            Self::NoPermission => f.write_str("needs permission"),
            Self::GpuLost => f.write_str("GPU lost"),
            Self::Asleep => f.write_str("asleep to save power"),
            Self::NoAnswer => f.write_str("the driver has not answered"),
            Self::NotReadYet => f.write_str("not read yet"),
            Self::WarmingUp => f.write_str("needs a second sample"),
            Self::Unknown => f.write_str("unknown to the driver"),
            Self::NotInProc => f.write_str(
                "not in /proc: the process has ended, or is in another PID namespace (a \
                 container or the host)",
            ),
            Self::Ended => f.write_str("the process has ended"),
            Self::Hidden => f.write_str("hidden: belongs to another user"),
            Self::Distrusted => f.write_str("not trusted after a fatal hardware error"),
            Self::NeedsGpumon => {
                f.write_str("not reported by nvidia-smi: install gpumon on the host")
            }
            Self::DriverError { code } => write!(f, "driver error {code}"),
        }
    }
}

// Decoding of readings, whose format is recognized by the first JSON key.
//
// The code that serde derives for an untagged enum copies every value and tries one format after
// another. A server that receives lines with a thousand readings would spend most of its time on
// that.

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

/// The first key of a JSON object, which distinguishes the formats of a reading. If a reading's
/// plain value is an object, this object never starts with one of the named keys.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check_round_trip(reading: &Reading<f64>, json: &str) {
        assert_eq!(serde_json::to_string(reading).unwrap(), json);
        assert_eq!(
            &serde_json::from_str::<Reading<f64>>(json).unwrap(),
            reading
        );
    }

    #[test]
    fn reading_json_has_value_time_or_absence_reason() {
        check_round_trip(&Reading::Now(64.5), "64.5");
        check_round_trip(
            &Reading::Earlier {
                value: 64.5,
                at_ms: 7,
            },
            r#"{"value":64.5,"at_ms":7}"#,
        );
        check_round_trip(
            &Reading::Absent(Absence::NotSupported),
            r#"{"absent":"not_supported"}"#,
        );
        check_round_trip(
            &Reading::Absent(Absence::DriverError { code: 999 }),
            r#"{"absent":"driver_error","code":999}"#,
        );
    }

    #[test]
    fn reading_can_contain_any_serializable_type() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Pair {
            a: Reading<f64>,
            b: Option<String>,
        }
        let pair = Pair {
            a: Reading::Absent(Absence::Hidden),
            b: Some("x".to_owned()),
        };
        let json = r#"{"a":{"absent":"hidden"},"b":"x"}"#;
        assert_eq!(serde_json::to_string(&Reading::Now(&pair)).unwrap(), json);
        assert_eq!(
            serde_json::from_str::<Reading<Pair>>(json).unwrap(),
            Reading::Now(pair)
        );
        let dated = serde_json::from_str::<Reading<Pair>>(
            r#"{"at_ms":7,"value":{"b":null,"a":{"value":1,"at_ms":2}}}"#,
        );
        let value = Pair {
            a: Reading::Earlier {
                value: 1.0,
                at_ms: 2,
            },
            b: None,
        };
        assert_eq!(dated.unwrap(), Reading::Earlier { value, at_ms: 7 });
        assert_eq!(
            serde_json::from_str::<Reading<bool>>("true").unwrap(),
            Reading::Now(true)
        );
        assert_eq!(
            serde_json::from_str::<Reading<String>>(r#""\u00e9""#).unwrap(),
            Reading::Now("é".to_owned())
        );
        assert_eq!(
            serde_json::from_str::<Reading<i64>>("-3").unwrap(),
            Reading::Now(-3)
        );
        let state =
            serde_json::from_str::<Reading<super::super::NvLinkRemote>>(r#""switch""#).unwrap();
        assert_eq!(state, Reading::Now(super::super::NvLinkRemote::Switch));
        // Readings can also be decoded from a JSON value in memory, not only from text.
        let in_memory = serde_json::json!({"value": 3, "at_ms": 5});
        assert_eq!(
            serde_json::from_value::<Reading<u8>>(in_memory).unwrap(),
            Reading::Earlier { value: 3, at_ms: 5 }
        );
    }

    #[test]
    fn invalid_reading_is_refused() {
        for text in [
            "null",
            "{}",
            "[]",
            r#""x""#,
            r#"{"value":1}"#,
            r#"{"at_ms":1}"#,
            r#"{"value":1,"at_ms":2,"absent":"unknown"}"#,
            r#"{"absent":"because"}"#,
            r#"{"absent":"driver_error"}"#,
            r#"{"other":1}"#,
        ] {
            assert!(
                serde_json::from_str::<Reading<f64>>(text).is_err(),
                "{text}"
            );
        }
        assert!(serde_json::from_str::<Reading<u8>>("256").is_err());
    }

    #[test]
    fn absent_list_differs_from_empty_list() {
        let absent: Reading<Vec<u32>> =
            serde_json::from_str(r#"{"absent":"no_permission"}"#).unwrap();
        assert_eq!(absent, Reading::Absent(Absence::NoPermission));
        assert_eq!(
            serde_json::from_str::<Reading<Vec<u32>>>("[]").unwrap(),
            Reading::Now(vec![])
        );
    }
}
