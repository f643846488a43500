//! How large an array is, as it is typed.

use gpumon_workload::protocol::Amount;

use crate::options::bytes_in;

/// Beyond this, a number with a point has no place for a single element.
const MOST: f64 = 9e15;

pub(super) fn parse_amount(text: &str) -> Result<Amount, String> {
    let bad = || {
        "not a size: give a number of elements, as 4096, 1e7 or 64Mi, or of bytes, as 256MiB"
            .to_owned()
    };
    // `1e7` has a letter that is no unit.
    let is_unit = |(at, letter): &(usize, char)| {
        letter.is_ascii_alphabetic()
            && !text[at + 1..].starts_with(|next: char| next.is_ascii_digit())
    };
    let unit_at = text
        .char_indices()
        .find(is_unit)
        .map_or(text.len(), |(at, _)| at);
    let (number, unit) = (&text[..unit_at], text[unit_at..].to_ascii_lowercase());
    let number: f64 = number.trim().parse().map_err(|_| bad())?;
    let is_bytes = unit.ends_with('b');
    let factor = if is_bytes {
        bytes_in(&unit)
    } else {
        bytes_in(&format!("{unit}b"))
    }
    .ok_or_else(bad)?;
    match (number * factor).round() {
        count if !(1.0..=MOST).contains(&count) => {
            Err("not a size of anything: give 1 or more".to_owned())
        }
        count if is_bytes => Ok(Amount::Bytes(count as u64)),
        count => Ok(Amount::Count(count as u64)),
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
            assert!(parse_amount(text).unwrap_err().contains("give"), "{text}");
        }
    }
}
