//! The series in a Prometheus response.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use super::samples::{Sample, Text};

/// The maximum number of series per response. No fleet needs more, and this many still fit into
/// memory.
pub(in crate::prometheus) const MAX_SERIES: usize = 200_000;

/// The maximum number of labels per series. No real series has more.
const MAX_LABELS: usize = 64;

#[derive(Debug, Default)]
pub(in crate::prometheus) struct Row<'a> {
    pub(in crate::prometheus) labels: Labels<'a>,
    /// The samples, at least one. Each is a time in seconds since 1970 and a value.
    pub(in crate::prometheus) samples: Vec<(f64, f64)>,
}

impl Row<'_> {
    /// Returns the value of a series in an instant query's result, or `None` if the value is not
    /// finite.
    pub(in crate::prometheus) fn value(&self) -> Option<f64> {
        self.samples
            .first()
            .map(|(_, value)| *value)
            .filter(|value| value.is_finite())
    }
}

/// The labels of a series. Their values are untrusted.
#[derive(Debug, Default)]
pub(in crate::prometheus) struct Labels<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl Labels<'_> {
    /// Returns a label's value. As in Prometheus, a missing label is equal to an empty string.
    pub(in crate::prometheus) fn get(&self, name: &str) -> &str {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map_or("", |(_, value)| value)
    }

    /// Returns the first non-empty value among the labels `names`.
    pub(in crate::prometheus) fn first_value(&self, names: &[&str]) -> &str {
        names
            .iter()
            .map(|name| self.get(name))
            .find(|value| !value.is_empty())
            .unwrap_or("")
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Labels<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Of;
        impl<'de> Visitor<'de> for Of {
            type Value = Labels<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("labels")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut all = Vec::with_capacity(8);
                while let Some((Text(key), Text(value))) = map.next_entry()? {
                    if all.len() < MAX_LABELS {
                        all.push((key, value));
                    }
                }
                Ok(Labels(all))
            }
        }
        deserializer.deserialize_map(Of)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Row<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Of;
        impl<'de> Visitor<'de> for Of {
            type Value = Row<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a series")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut row = Row::default();
                while let Some(Text(key)) = map.next_key()? {
                    match &*key {
                        "metric" => row.labels = map.next_value()?,
                        "value" => row.samples.push(map.next_value::<Sample>()?.0),
                        "values" => {
                            row.samples = map
                                .next_value::<Vec<Sample>>()?
                                .into_iter()
                                .map(|it| it.0)
                                .collect();
                        }
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(row)
            }
        }
        deserializer.deserialize_map(Of)
    }
}

/// The series that have been parsed so far, up to the maximum.
#[derive(Debug, Default)]
pub(super) struct Series<'a> {
    pub(super) rows: Vec<Row<'a>>,
    pub(super) is_cut: bool,
}

impl<'de: 'a, 'a> Deserialize<'de> for Series<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Of;
        impl<'de> Visitor<'de> for Of {
            type Value = Series<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("series")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut all = Series::default();
                while all.rows.len() < MAX_SERIES {
                    let Some(row) = list.next_element::<Row<'de>>()? else {
                        return Ok(all);
                    };
                    if !row.samples.is_empty() {
                        all.rows.push(row);
                    }
                }
                while list.next_element::<IgnoredAny>()?.is_some() {
                    all.is_cut = true;
                }
                Ok(all)
            }
        }
        deserializer.deserialize_seq(Of)
    }
}
