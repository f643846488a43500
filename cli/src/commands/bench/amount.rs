//! How large an array is, as it is typed.

use gpumon_probe::{model::fields::Unit, units};
use gpumon_workload::protocol::Amount;

/// Beyond this, a number with a point has no place for a single element.
const MOST: f64 = 9e15;

pub(super) fn parse_amount(text: &str) -> Result<Amount, String> {
    let expected =
        || "not 1 or more elements, such as 4096, 1e7 or 64Mi, or bytes, such as 256MiB".to_owned();
    let mut typed = units::Amount::parse(text).ok_or_else(expected)?;
    let is_bytes = typed.unit.ends_with(['b', 'B']);
    if !is_bytes {
        typed.unit += "B";
    }
    let count = typed.convert_to(Unit::Bytes).ok_or_else(expected)?.round();
    match count {
        _ if !(1.0..=MOST).contains(&count) => Err(expected()),
        _ if is_bytes => Ok(Amount::Bytes(count as u64)),
        _ => Ok(Amount::Count(count as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_and_bytes_are_told_apart() {
        for (text, amount) in [
            ("4096", Amount::Count(4096)),
            ("1e7", Amount::Count(10_000_000)),
            ("64Mi", Amount::Count(64 << 20)),
            ("1.5k", Amount::Count(1500)),
            ("256MiB", Amount::Bytes(256 << 20)),
            ("160GB", Amount::Bytes(160_000_000_000)),
            ("1 GiB", Amount::Bytes(1 << 30)),
        ] {
            assert_eq!(parse_amount(text), Ok(amount), "{text}");
        }
        for text in [
            "",
            "0",
            "-1",
            "MiB",
            "1e",
            "10 apples",
            "nan",
            "inf",
            "1e99",
            "0.1B",
        ] {
            assert!(parse_amount(text).unwrap_err().contains("256MiB"), "{text}");
        }
    }
}
