//! What stands in a cell: a value without its unit, or why there is none.

use std::fmt;

use gpumon_probe::{
    untrusted::printable,
    vendor::nvml::query::{Answer, Code},
};

use crate::return_code;

/// A value, or a word instead of it.
pub(super) type Cell = Result<String, Absent>;

/// The word instead of a value. It never carries a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Absent(String);

impl Absent {
    pub(super) fn word(word: &str) -> Self {
        Self(word.to_owned())
    }

    /// What is not there on this board.
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

/// One of an answer's numbers. An answer without it came from a library that we do not understand.
pub(super) fn at(answer: Answer, place: usize) -> Result<i128, Absent> {
    Ok(answer?.at(place).ok_or(Code::UNKNOWN)?)
}

pub(super) fn number(answer: Answer, place: usize) -> Cell {
    Ok(at(answer, place)?.to_string())
}

/// A number in capital hexadecimal digits, at least so many.
pub(super) fn hexadecimal(answer: Answer, place: usize, digits: usize) -> Cell {
    let number = at(answer, place)?;
    Ok(format!("0x{number:0digits$X}"))
}

/// Text. Other programs choose some of it, and it goes to a terminal: control characters become spaces.
pub(super) fn text(answer: Answer) -> Cell {
    let value = answer?;
    let text = value.text().ok_or(Code::UNKNOWN)?;
    Ok(text.chars().map(printable).collect())
}

/// Bytes in MiB, every one that was begun counted.
pub(super) fn mebibytes(answer: Answer, place: usize) -> Cell {
    Ok(whole_mebibytes(at(answer, place)?))
}

/// The same of a number of bytes.
pub(super) fn whole_mebibytes(bytes: i128) -> String {
    const MEBIBYTE: i128 = 1 << 20;
    ((bytes + MEBIBYTE - 1) / MEBIBYTE).to_string()
}

pub(super) fn milliwatts(answer: Answer, place: usize) -> Cell {
    Ok(format!("{:.2}", at(answer, place)? as f64 / 1000.0))
}

/// A quantity that may be an integer or not, with two places behind the point.
pub(super) fn two_places(answer: Answer) -> Cell {
    Ok(format!("{:.2}", answer?.real().ok_or(Code::UNKNOWN)?))
}

/// The word for a number; a number without a word comes from a newer driver.
pub(super) fn word(answer: Answer, place: usize, words: &[&str]) -> Cell {
    let number = at(answer, place)?;
    let word = usize::try_from(number)
        .ok()
        .and_then(|number| words.get(number))
        .ok_or(Code::UNKNOWN)?;
    Ok((*word).to_owned())
}

pub(super) fn enabled(answer: Answer, place: usize) -> Cell {
    word(answer, place, &["Disabled", "Enabled"])
}

/// What is so or not.
pub(super) fn yes(answer: Answer, place: usize) -> Cell {
    word(answer, place, &["No", "Yes"])
}

pub(super) fn supported(answer: Answer, place: usize) -> Cell {
    word(answer, place, &["Not Supported", "Supported"])
}

#[cfg(test)]
mod tests {
    use gpumon_probe::vendor::nvml::query::Value;

    use super::*;

    fn numbers(numbers: &[i128]) -> Value {
        Value::Numbers(numbers.to_vec())
    }

    fn absent(cell: Cell) -> String {
        cell.unwrap_err().to_string()
    }

    #[test]
    fn a_mebibyte_that_was_begun_counts() {
        for (bytes, expected) in [
            (0, "0"),
            (1, "1"),
            (1 << 20, "1"),
            ((1 << 20) + 1, "2"),
            (150_754_820_096, "143771"),
        ] {
            assert_eq!(
                mebibytes(Ok(numbers(&[bytes])), 0).unwrap(),
                expected,
                "{bytes}"
            );
        }
    }

    #[test]
    fn watts_have_two_places() {
        assert_eq!(milliwatts(Ok(numbers(&[700_000])), 0).unwrap(), "700.00");
        assert_eq!(milliwatts(Ok(numbers(&[75_442])), 0).unwrap(), "75.44");
        assert_eq!(two_places(Ok(Value::Reals(vec![612.5]))).unwrap(), "612.50");
        assert_eq!(two_places(Ok(numbers(&[3]))).unwrap(), "3.00");
    }

    #[test]
    fn why_there_is_nothing_stands_in_brackets() {
        assert_eq!(absent(number(Err(Code::NOT_SUPPORTED), 0)), "[N/A]");
        assert_eq!(
            absent(number(Err(Code::NO_PERMISSION), 0)),
            "[Insufficient Permissions]"
        );
        assert_eq!(absent(number(Err(Code::GPU_IS_LOST), 0)), "[GPU is lost]");
        assert_eq!(absent(number(Ok(numbers(&[1])), 1)), "[Unknown Error]");
        assert_eq!(absent(text(Ok(numbers(&[1])))), "[Unknown Error]");
        assert_eq!(absent(yes(Ok(numbers(&[7])), 0)), "[Unknown Error]");
        assert_eq!(absent(yes(Ok(numbers(&[-1])), 0)), "[Unknown Error]");
    }

    #[test]
    fn text_cannot_steer_a_terminal_or_begin_a_line() {
        let hostile = Ok(Value::Text("a\u{1b}[31mb\nc".to_owned()));
        assert_eq!(text(hostile).unwrap(), "a [31mb c");
    }
}
