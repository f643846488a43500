//! Parsing of Prometheus' responses, which contain series, warnings, or an error.
//!
//! Labels are borrowed from the response's bytes, because a response can contain hundreds of
//! thousands of labels.

use std::{borrow::Cow, fmt};

use gpumon_probe::owner::clean_line;
use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

/// A parsed Prometheus query response.
#[derive(Debug, Default)]
pub(super) struct Answer<'a> {
    pub(super) rows: Vec<Row<'a>>,
    /// The source's warnings about its own response, such as missing data, with control characters
    /// removed.
    pub(super) warnings: Vec<String>,
    /// Whether some series were dropped because the response had more than the maximum number.
    pub(super) is_cut: bool,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    status: String,
    #[serde(borrow)]
    data: Option<Data<'a>>,
    warnings: Option<Vec<String>>,
    error: Option<String>,
    /// A flag that `VictoriaMetrics` and Thanos set if some of their stores did not respond.
    #[serde(default, rename = "isPartial")]
    is_partial: bool,
}

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow)]
    result: Series<'a>,
}

/// The maximum number of warnings that are kept per response.
const MAX_WARNINGS: usize = 5;

/// Parses a Prometheus query response.
///
/// # Errors
/// Returns the reason why `bytes` is not a Prometheus response.
pub(super) fn parse_answer(bytes: &[u8]) -> Result<Answer<'_>, String> {
    let envelope: Envelope<'_> =
        serde_json::from_slice(bytes).map_err(|error| describe_error(bytes, &error))?;
    if envelope.status != "success" {
        return Err(clean_line(
            envelope
                .error
                .as_deref()
                .unwrap_or("it reported an error without a message"),
        ));
    }
    let data = envelope.data.ok_or("its response has no data")?;
    let mut warnings: Vec<String> = envelope
        .warnings
        .unwrap_or_default()
        .iter()
        .take(MAX_WARNINGS)
        .map(|text| clean_line(text))
        .collect();
    if envelope.is_partial && warnings.is_empty() {
        warnings.push("some stores did not respond".to_owned());
    }
    Ok(Answer {
        rows: data.result.rows,
        warnings,
        is_cut: data.result.is_cut,
    })
}

/// Returns the message in Prometheus' error response, if any.
pub(super) fn parse_error_message(bytes: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Refusal {
        error: String,
    }
    serde_json::from_slice::<Refusal>(bytes)
        .ok()
        .map(|refusal| clean_line(&refusal.error))
}

fn describe_error(bytes: &[u8], error: &serde_json::Error) -> String {
    let begin = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if begin == Some(&b'<') {
        "it returned a web page".to_owned()
    } else {
        clean_line(&format!(
            "its response is not the result of a query ({error})"
        ))
    }
}

/// The maximum number of series per response. No fleet needs more, and this many still fit into
/// memory.
pub(super) const MAX_SERIES: usize = 200_000;

/// The maximum number of labels per series. No real series has more.
const MAX_LABELS: usize = 64;

/// One series in a Prometheus response.
#[derive(Debug, Default)]
pub(super) struct Row<'a> {
    pub(super) labels: Labels<'a>,
    /// The samples, at least one. Each is a time in seconds since 1970 and a value.
    pub(super) samples: Vec<(f64, f64)>,
}

impl Row<'_> {
    /// Returns the value of a series in an instant query's result, or `None` if the value is not
    /// finite.
    pub(super) fn value(&self) -> Option<f64> {
        self.samples
            .first()
            .map(|(_, value)| *value)
            .filter(|value| value.is_finite())
    }
}

/// The labels of a series. Their values are untrusted.
#[derive(Debug, Default)]
pub(super) struct Labels<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl Labels<'_> {
    /// Returns a label's value. As in Prometheus, a missing label is equal to an empty string.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map_or("", |(_, value)| value)
    }

    /// Returns the first non-empty value among the labels `names`.
    pub(super) fn first_value(&self, names: &[&str]) -> &str {
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
struct Series<'a> {
    rows: Vec<Row<'a>>,
    is_cut: bool,
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

/// A JSON string that is borrowed unless it contains escapes.
struct Text<'a>(Cow<'a, str>);

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

/// A sample such as `[1700000000.123, "0.25"]`, which is a time and a value.
struct Sample((f64, f64));

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_of_every_format_are_parsed() {
        let vector = br#"{"status":"success","data":{"resultType":"vector","result":[
            {"metric":{"__name__":"x","gpu":"1","job":"a\"b"},"value":[1700000000.5,"0.25"]},
            {"metric":{},"value":[1,"NaN"]}, {"metric":{},"value":[1,"+Inf"]}]}}"#;
        let answer = parse_answer(vector).unwrap();
        assert_eq!(answer.rows.len(), 3);
        let row = &answer.rows[0];
        assert_eq!(
            (
                row.labels.get("job"),
                row.labels.get("gpu"),
                row.labels.get("none")
            ),
            ("a\"b", "1", "")
        );
        assert_eq!(row.samples, [(1_700_000_000.5, 0.25)]);
        assert!(answer.rows[1].samples[0].1.is_nan());
        let matrix = br#"{"status":"success","warnings":["one store\u001b[31m is down"],"data":{"resultType":"matrix",
            "result":[{"metric":{"a":"b"},"values":[[1,"2"],[3,"4"]],"histograms":[[1,{"count":"1"}]]}]}}"#;
        let answer = parse_answer(matrix).unwrap();
        assert_eq!(answer.rows[0].samples, [(1.0, 2.0), (3.0, 4.0)]);
        assert_eq!(answer.warnings, ["one store\u{fffd}[31m is down"]);
        let scalar = br#"{"status":"success","data":{"resultType":"scalar","result":[5,"7"]}}"#;
        assert!(parse_answer(scalar).is_err(), "no query asks for one");
    }

    #[test]
    fn invalid_prometheus_answer_is_described_in_sentence() {
        for (bytes, cause) in [
            ("<html>\u{1b}", "a web page"),
            ("", "not the result of a query"),
            ("{\"status\":\"success\"}", "no data"),
            ("{\"status\":\"error\",\"error\":\"no\\nway\"}", "no way"),
            (
                "{\"status\":\"success\",\"data\":{\"result\":[{\"metric\":{\"a\":1}}]}}",
                "not the result of a query",
            ),
            (
                "{\"status\":\"success\",\"data\":{\"result\":[",
                "not the result of a query",
            ),
        ] {
            let error = parse_answer(bytes.as_bytes()).unwrap_err();
            assert!(
                error.contains(cause) && !error.contains('\u{1b}'),
                "{bytes}: {error}"
            );
        }
    }
}
