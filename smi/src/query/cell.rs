//! The content of a cell, which is a value without its unit, or a word that replaces a missing
//! value.

use std::fmt;

use gpumon_probe::{
    untrusted::to_printable,
    vendor::nvml::query::{Answer, Code, Value},
};

use crate::{error_messages, formats::round_up_to_mib};

/// A cell's value, or the word that replaces it.
pub(super) type Cell = Result<String, Absent>;

/// The word that a cell shows instead of a value. It is printed without a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Absent(String);

impl Absent {
    pub(super) fn new(word: &str) -> Self {
        Self(word.to_owned())
    }

    /// Creates the word for a value that the board does not have.
    pub(super) fn new_not_available() -> Self {
        Self::from(Code::NOT_SUPPORTED)
    }
}

impl From<Code> for Absent {
    fn from(code: Code) -> Self {
        Self(error_messages::describe_code_in_brackets(code))
    }
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn require_value(answer: &Answer) -> Result<&Value, Code> {
    answer.as_ref().map_err(|code| *code)
}

/// Returns a number from an answer. A missing number means that the library uses a format that
/// gpumon does not know.
pub(super) fn read_number(answer: &Answer, place: usize) -> Result<i128, Absent> {
    Ok(require_value(answer)?
        .number_at(place)
        .ok_or(Code::UNKNOWN)?)
}

/// Formats the number at index `PLACE` of the answer.
pub(super) fn format_number<const PLACE: usize>(answer: &Answer) -> Cell {
    Ok(read_number(answer, PLACE)?.to_string())
}

/// Formats a number as uppercase hexadecimal with at least `DIGITS` digits.
pub(super) fn format_hexadecimal<const PLACE: usize, const DIGITS: usize>(answer: &Answer) -> Cell {
    let number = read_number(answer, PLACE)?;
    Ok(format!("0x{number:0DIGITS$X}"))
}

/// Formats a number of bytes as MiB, rounded up.
pub(super) fn format_mebibytes<const PLACE: usize>(answer: &Answer) -> Cell {
    Ok(round_up_to_mib(read_number(answer, PLACE)?).to_string())
}

/// Formats a power in milliwatts as watts.
pub(super) fn format_watts<const PLACE: usize>(answer: &Answer) -> Cell {
    Ok(format!(
        "{:.2}",
        read_number(answer, PLACE)? as f64 / 1000.0
    ))
}

pub(super) fn format_enabled<const PLACE: usize>(answer: &Answer) -> Cell {
    format_word(answer, PLACE, &["Disabled", "Enabled"])
}

pub(super) fn format_yes_no<const PLACE: usize>(answer: &Answer) -> Cell {
    format_word(answer, PLACE, &["No", "Yes"])
}

pub(super) fn format_supported<const PLACE: usize>(answer: &Answer) -> Cell {
    format_word(answer, PLACE, &["Not Supported", "Supported"])
}

/// Returns the word for a number. A number without a word comes from a newer driver.
pub(super) fn format_word(answer: &Answer, place: usize, words: &[&str]) -> Cell {
    let number = read_number(answer, place)?;
    let word = usize::try_from(number)
        .ok()
        .and_then(|number| words.get(number))
        .ok_or(Code::UNKNOWN)?;
    Ok((*word).to_owned())
}

/// Formats an integer or a floating-point number with two decimal places.
pub(super) fn format_decimal(answer: &Answer) -> Cell {
    Ok(format!(
        "{:.2}",
        require_value(answer)?
            .first_as_float()
            .ok_or(Code::UNKNOWN)?
    ))
}

/// Formats text. Control characters are replaced by spaces, because other programs can choose parts
/// of the text, and a terminal would interpret them.
pub(super) fn format_text(answer: &Answer) -> Cell {
    let text = require_value(answer)?.text().ok_or(Code::UNKNOWN)?;
    Ok(text.chars().map(to_printable).collect())
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
    fn partial_mebibyte_rounds_up() {
        for (bytes, expected) in [
            (0, "0"),
            (1, "1"),
            (1 << 20, "1"),
            ((1 << 20) + 1, "2"),
            (150_754_820_096, "143771"),
        ] {
            assert_eq!(
                format_mebibytes::<0>(&Ok(make_value(&[bytes]))).unwrap(),
                expected,
                "{bytes}"
            );
        }
    }

    #[test]
    fn watts_have_two_places() {
        assert_eq!(
            format_watts::<0>(&Ok(make_value(&[700_000]))).unwrap(),
            "700.00"
        );
        assert_eq!(
            format_watts::<0>(&Ok(make_value(&[75_442]))).unwrap(),
            "75.44"
        );
        assert_eq!(
            format_decimal(&Ok(Value::Reals(vec![612.5]))).unwrap(),
            "612.50"
        );
        assert_eq!(format_decimal(&Ok(make_value(&[3]))).unwrap(), "3.00");
    }

    #[test]
    fn absent_value_has_reason_in_brackets() {
        let reason = |code| format_absent(format_number::<0>(&Err(code)));
        assert_eq!(reason(Code::NOT_SUPPORTED), "[N/A]");
        assert_eq!(reason(Code::NO_PERMISSION), "[Insufficient Permissions]");
        assert_eq!(reason(Code::GPU_IS_LOST), "[GPU is lost]");
        for cell in [
            format_number::<1>(&Ok(make_value(&[1]))),
            format_text(&Ok(make_value(&[1]))),
            format_yes_no::<0>(&Ok(make_value(&[7]))),
            format_yes_no::<0>(&Ok(make_value(&[-1]))),
        ] {
            assert_eq!(format_absent(cell), "[Unknown Error]");
        }
    }

    #[test]
    fn control_characters_of_text_become_spaces() {
        let hostile = Ok(Value::Text("a\u{1b}[31mb\nc".to_owned()));
        assert_eq!(format_text(&hostile).unwrap(), "a [31mb c");
    }
}
