//! Content negotiation for the format of metrics (RFC 9110, section 12.5.1).

use axum::http::{HeaderMap, header};

use super::text::Format;

/// Returns `OpenMetrics` if the client accepts it with at least the same weight as the text format,
/// as Prometheus does.
pub(super) fn choose_format(headers: &HeaderMap) -> Format {
    let values = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let (mut open_metrics, mut text) = (0.0, 0.0);
    for range in values.flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
        let (mut weight, mut version) = (1.0, None);
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name.trim_end().to_ascii_lowercase().as_str() {
                // An invalid weight counts as 0.
                "q" => weight = value.trim().parse::<f32>().unwrap_or(0.0),
                "version" => version = Some(value.trim().trim_matches('"')),
                _ => {}
            }
        }
        match (media_type.as_str(), version) {
            ("application/openmetrics-text", None | Some("1.0.0")) => {
                open_metrics = weight.max(open_metrics);
            }
            ("text/plain", _) => text = weight.max(text),
            _ => {}
        }
    }
    if open_metrics > 0.0 && open_metrics >= text {
        Format::OpenMetrics
    } else {
        Format::Text
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn choose_format_for(accept: &'static str) -> Format {
        choose_format(&HeaderMap::from_iter([(
            header::ACCEPT,
            HeaderValue::from_static(accept),
        )]))
    }

    #[test]
    fn open_metrics_is_sent_on_request() {
        for accept in [
            // The first two headers are sent by Prometheus 2.42 and 3.5.
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
             text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
             application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
             text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
            "application/openmetrics-text",
            "Application/OpenMetrics-Text; Version=1.0.0 ; Q=0.2",
        ] {
            assert_eq!(choose_format_for(accept), Format::OpenMetrics, "{accept}");
        }
    }

    #[test]
    fn text_format_is_the_default() {
        for accept in [
            "",
            "*/*",
            "text/html,application/xhtml+xml,*/*;q=0.8",
            "text/plain;version=0.0.4",
            "application/openmetrics-text;version=0.0.1",
            "application/openmetrics-text;version=2.0.0",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;q=x",
            "application/openmetrics-text;q=0.3,text/plain;q=0.5",
        ] {
            assert_eq!(choose_format_for(accept), Format::Text, "{accept}");
        }
        assert_eq!(choose_format(&HeaderMap::new()), Format::Text);
    }
}
