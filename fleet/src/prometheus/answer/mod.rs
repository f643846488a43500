//! Parsing of Prometheus' responses, which contain series, warnings, or an error.
//!
//! Labels are borrowed from the response's bytes, because a response can contain hundreds of
//! thousands of labels.

mod result;
mod samples;

use gpumon_probe::owner::clean_line;
use serde::Deserialize;

use self::result::Series;
pub(super) use self::result::{Labels, MAX_SERIES, Row};

/// A parsed Prometheus query response.
#[derive(Debug, Default)]
pub(super) struct Answer<'a> {
    pub(super) rows: Vec<Row<'a>>,
    /// The source's warnings about its own response, such as missing data, with control characters
    /// removed.
    pub(super) warnings: Vec<String>,
    /// Whether the response had more series than the maximum; the others were dropped.
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
    fn invalid_answer_is_described_in_sentence() {
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
