//! Parsing of the cells in nvidia-smi's CSV output.

use gpumon_probe::model::{Absence, Reading};

const MIB: u64 = 1 << 20;

/// One cell of a CSV row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell<'a>(pub(super) &'a str);

impl<'a> Cell<'a> {
    /// Returns the cell's text.
    ///
    /// # Errors
    /// Returns the reason for the absence if the cell contains no value.
    pub(super) fn text(self) -> Result<&'a str, Absence> {
        let text = self.0.trim();
        let reported = text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .unwrap_or(text);
        match reported {
            "N/A" | "Not Supported" | "Not Available" => Err(Absence::NotSupported),
            _ if reported.ends_with("has been deprecated") => Err(Absence::NotSupported),
            "Insufficient Permissions" => Err(Absence::NoPermission),
            "Not Found" => Err(Absence::NotInProc),
            "GPU is lost" | "GPU requires reset" => Err(Absence::GpuLost),
            "" | "ERR!" | "Unknown" | "Unknown Error" => Err(Absence::Unknown),
            // Newer drivers may write other text in brackets, which also means that there is no
            // value.
            _ if reported.len() < text.len() => Err(Absence::Unknown),
            text => Ok(text),
        }
    }

    /// Parses a number, ignoring its unit.
    pub(super) fn parse_number(self) -> Reading<f64> {
        let number = |text: &str| {
            let number = text
                .split(' ')
                .next()
                .and_then(|number| number.parse::<f64>().ok());
            number
                .filter(|number| number.is_finite())
                .ok_or(Absence::Unknown)
        };
        self.text().and_then(number).into()
    }

    pub(super) fn parse_whole_number(self) -> Reading<u64> {
        match self.parse_number() {
            Reading::Now(number) if number >= 0.0 && number <= u64::MAX as f64 => {
                Reading::Now(number as u64)
            }
            Reading::Absent(reason) => Reading::Absent(reason),
            _ => Reading::Absent(Absence::Unknown),
        }
    }

    /// Parses a whole number of at most 32 bits.
    pub(super) fn parse_small_number(self) -> Reading<u32> {
        match self.parse_whole_number() {
            Reading::Now(number) => u32::try_from(number).map_err(|_| Absence::Unknown).into(),
            other => other.map(|_| 0),
        }
    }

    /// Parses an amount of memory in MiB and returns it in bytes.
    pub(super) fn parse_mebibytes(self) -> Reading<u64> {
        match self.parse_whole_number() {
            Reading::Now(number) => number.checked_mul(MIB).ok_or(Absence::Unknown).into(),
            other => other,
        }
    }

    /// Returns `true` if the cell contains `yes`, and `false` if it contains `no`.
    pub(super) fn parse_choice(self, yes: &str, no: &str) -> Reading<bool> {
        let truth = |text: &str| match text {
            text if text == yes => Ok(true),
            text if text == no => Ok(false),
            _ => Err(Absence::Unknown),
        };
        self.text().and_then(truth).into()
    }

    /// Parses a bit mask such as `0x0000000000000004`.
    pub(super) fn parse_mask(self) -> Reading<u64> {
        let mask = |text: &str| {
            let digits = text.strip_prefix("0x").ok_or(Absence::Unknown)?;
            u64::from_str_radix(digits, 16).map_err(|_| Absence::Unknown)
        };
        self.text().and_then(mask).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_without_value_has_reason() {
        for (text, reason) in [
            ("[N/A]", Absence::NotSupported),
            ("N/A", Absence::NotSupported),
            ("[Not Supported]", Absence::NotSupported),
            (
                " [Requested functionality has been deprecated] ",
                Absence::NotSupported,
            ),
            ("[Insufficient Permissions]", Absence::NoPermission),
            ("[GPU is lost]", Absence::GpuLost),
            ("[GPU requires reset]", Absence::GpuLost),
            ("[Unknown Error]", Absence::Unknown),
            ("ERR!", Absence::Unknown),
            ("[Something new]", Absence::Unknown),
            ("", Absence::Unknown),
            ("nan", Absence::Unknown),
            ("1e999", Absence::Unknown),
            ("P0", Absence::Unknown),
        ] {
            assert_eq!(Cell(text).parse_number(), Reading::Absent(reason), "{text}");
        }
    }

    #[test]
    fn values_are_converted_to_units() {
        assert_eq!(Cell(" 71.15").parse_number(), Reading::Now(71.15));
        assert_eq!(Cell("71.15 W").parse_number(), Reading::Now(71.15));
        assert_eq!(Cell("81559").parse_mebibytes(), Reading::Now(81_559 * MIB));
        assert_eq!(
            Cell("99999999999999999").parse_mebibytes(),
            Reading::Absent(Absence::Unknown)
        );
        assert_eq!(
            Cell("-1").parse_whole_number(),
            Reading::Absent(Absence::Unknown)
        );
        assert_eq!(
            Cell("4294967296").parse_small_number(),
            Reading::Absent(Absence::Unknown)
        );
        assert_eq!(Cell("0x0000000000000004").parse_mask(), Reading::Now(4));
        assert_eq!(
            Cell("Enabled").parse_choice("Enabled", "Disabled"),
            Reading::Now(true)
        );
        assert_eq!(
            Cell("Maybe").parse_choice("Enabled", "Disabled"),
            Reading::Absent(Absence::Unknown)
        );
    }
}
