//! How long to hold memory, as it is typed.

/// Time in seconds: at most ten minutes, since others may be waiting for the GPU.
pub(super) fn parse_hold(text: &str) -> Result<f64, String> {
    let bad = || "not a time to hold memory: give 10ms to 10m, as 500ms, 3s or 2m".to_owned();
    let unit_at = text.find(|letter: char| letter.is_ascii_alphabetic()).ok_or_else(bad)?;
    let unit_seconds = match &text[unit_at..] {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        _ => return Err(bad()),
    };
    let count: f64 = text[..unit_at].trim().parse().map_err(|_| bad())?;
    Some(count * unit_seconds).filter(|seconds| (0.01..=600.0).contains(seconds)).ok_or_else(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit_and_a_bound() {
        for (text, seconds) in [("500ms", 0.5), ("3s", 3.0), ("0.5s", 0.5), ("10m", 600.0)] {
            assert_eq!(parse_hold(text), Ok(seconds), "{text}");
        }
        for text in ["", "3", "s", "0s", "-1s", "11m", "1h", "1ms", "nans", "infs", "3 apples"] {
            assert!(parse_hold(text).unwrap_err().contains("give 10ms to 10m"), "{text}");
        }
    }
}
