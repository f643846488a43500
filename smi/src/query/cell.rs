//! The content of a cell: a value without its unit, or a word that explains why there is no value.

use std::fmt;

use gpumon_probe::{
    untrusted::printable,
    vendor::nvml::query::{Answer, Code, Value},
};

use crate::return_code;

/// A value, or the word that replaces it.
pub(super) type Cell = Result<String, Absent>;

/// The word that is shown instead of a value. It is printed without a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Absent(String);

impl Absent {
    pub(super) fn word(word: &str) -> Self {
        Self(word.to_owned())
    }

    /// The word for a value that this board does not have.
    pub(super) fn not_available() -> Self {
        Self::from(Code::NOT_SUPPORTED)
    }
}

impl From<Code> for Absent {
    fn from(code: Code) -> Self {
        Self(return_code::bracketed(code))
    }
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn value_of(answer: &Answer) -> Result<&Value, Code> {
    answer.as_ref().map_err(|code| *code)
}

/// Returns one of an answer's numbers. If the number is missing, the library uses a format that is
/// unknown to gpumon.
pub(super) fn number_at(answer: &Answer, place: usize) -> Result<i128, Absent> {
    Ok(value_of(answer)?.at(place).ok_or(Code::UNKNOWN)?)
}

/// Formats the number at an index of the answer. The following functions format such a number, too.
pub(super) fn as_number<const PLACE: usize>(answer: &Answer) -> Cell {
    Ok(number_at(answer, PLACE)?.to_string())
}

/// Formats a number as uppercase hexadecimal with at least `DIGITS` digits.
pub(super) fn hexadecimal<const PLACE: usize, const DIGITS: usize>(answer: &Answer) -> Cell {
    let number = number_at(answer, PLACE)?;
    Ok(format!("0x{number:0DIGITS$X}"))
}

/// Converts bytes to MiB, rounded up.
pub(super) fn mebibytes<const PLACE: usize>(answer: &Answer) -> Cell {
    Ok(whole_mebibytes(number_at(answer, PLACE)?))
}

/// Converts bytes to MiB, rounded up.
pub(super) fn whole_mebibytes(bytes: i128) -> String {
    const MEBIBYTE: i128 = 1 << 20;
    ((bytes + MEBIBYTE - 1) / MEBIBYTE).to_string()
}

/// Converts milliwatts to watts.
pub(super) fn milliwatts<const PLACE: usize>(answer: &Answer) -> Cell {
    Ok(format!("{:.2}", number_at(answer, PLACE)? as f64 / 1000.0))
}

pub(super) fn as_enabled<const PLACE: usize>(answer: &Answer) -> Cell {
    as_word(answer, PLACE, &["Disabled", "Enabled"])
}

pub(super) fn as_yes_no<const PLACE: usize>(answer: &Answer) -> Cell {
    as_word(answer, PLACE, &["No", "Yes"])
}

pub(super) fn supported<const PLACE: usize>(answer: &Answer) -> Cell {
    as_word(answer, PLACE, &["Not Supported", "Supported"])
}

/// Returns the word for a number. Numbers without a word come from a newer driver.
pub(super) fn as_word(answer: &Answer, place: usize, words: &[&str]) -> Cell {
    let number = number_at(answer, place)?;
    let word = usize::try_from(number)
        .ok()
        .and_then(|number| words.get(number))
        .ok_or(Code::UNKNOWN)?;
    Ok((*word).to_owned())
}

/// Formats an integer or a floating-point number with two decimal places.
pub(super) fn two_places(answer: &Answer) -> Cell {
    Ok(format!(
        "{:.2}",
        value_of(answer)?.real().ok_or(Code::UNKNOWN)?
    ))
}

/// Formats a text. Control characters become spaces, because other programs can choose parts of the
/// text and it is printed to a terminal.
pub(super) fn text(answer: &Answer) -> Cell {
    let text = value_of(answer)?.text().ok_or(Code::UNKNOWN)?;
    Ok(text.chars().map(printable).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_value(numbers: &[i128]) -> Value {
        Value::Numbers(numbers.to_vec())
    }

    fn format_absent(cell: Cell) -> String {
        cell.unwrap_err().to_string()
    }

    #[test]
    fn begun_mebibyte_counts() {
        for (bytes, expected) in [
            (0, "0"),
            (1, "1"),
            (1 << 20, "1"),
            ((1 << 20) + 1, "2"),
            (150_754_820_096, "143771"),
        ] {
            assert_eq!(
                mebibytes::<0>(&Ok(make_value(&[bytes]))).unwrap(),
                expected,
                "{bytes}"
            );
        }
    }

    #[test]
    fn watts_have_two_places() {
        assert_eq!(
            milliwatts::<0>(&Ok(make_value(&[700_000]))).unwrap(),
            "700.00"
        );
        assert_eq!(
            milliwatts::<0>(&Ok(make_value(&[75_442]))).unwrap(),
            "75.44"
        );
        assert_eq!(
            two_places(&Ok(Value::Reals(vec![612.5]))).unwrap(),
            "612.50"
        );
        assert_eq!(two_places(&Ok(make_value(&[3]))).unwrap(), "3.00");
    }

    #[test]
    fn absent_value_has_reason_in_brackets() {
        let reason = |code| format_absent(as_number::<0>(&Err(code)));
        assert_eq!(reason(Code::NOT_SUPPORTED), "[N/A]");
        assert_eq!(reason(Code::NO_PERMISSION), "[Insufficient Permissions]");
        assert_eq!(reason(Code::GPU_IS_LOST), "[GPU is lost]");
        for cell in [
            as_number::<1>(&Ok(make_value(&[1]))),
            text(&Ok(make_value(&[1]))),
            as_yes_no::<0>(&Ok(make_value(&[7]))),
            as_yes_no::<0>(&Ok(make_value(&[-1]))),
        ] {
            assert_eq!(format_absent(cell), "[Unknown Error]");
        }
    }

    #[test]
    fn control_characters_of_text_become_spaces() {
        let hostile = Ok(Value::Text("a\u{1b}[31mb\nc".to_owned()));
        assert_eq!(text(&hostile).unwrap(), "a [31mb c");
    }
}
