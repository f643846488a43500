//! The cells of nvidia-smi's CSV.

use gpumon_probe::model::{Absence, Reading};

const MIB: u64 = 1 << 20;

/// A cell of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell<'a>(pub(super) &'a str);

impl<'a> Cell<'a> {
    /// Returns the text.
    ///
    /// # Errors
    /// Returns the reason if the cell has no value.
    pub(super) fn text(self) -> Result<&'a str, Absence> {
        let text = self.0.trim();
        let told = text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .unwrap_or(text);
        match told {
            "N/A" | "Not Supported" | "Not Available" => Err(Absence::NotSupported),
            _ if told.ends_with("has been deprecated") => Err(Absence::NotSupported),
            "Insufficient Permissions" => Err(Absence::NoPermission),
            "Not Found" => Err(Absence::NotInProc),
            "GPU is lost" | "GPU requires reset" => Err(Absence::GpuLost),
            "" | "ERR!" | "Unknown" | "Unknown Error" => Err(Absence::Unknown),
            // Other text in brackets from newer drivers is not a value either.
            _ if told.len() < text.len() => Err(Absence::Unknown),
            text => Ok(text),
        }
    }

    /// Returns a number without its unit.
    pub(super) fn number(self) -> Reading<f64> {
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

    /// Returns a whole number.
    pub(super) fn whole(self) -> Reading<u64> {
        match self.number() {
            Reading::Now(number) if number >= 0.0 && number <= u64::MAX as f64 => {
                Reading::Now(number as u64)
            }
            Reading::Absent(reason) => Reading::Absent(reason),
            _ => Reading::Absent(Absence::Unknown),
        }
    }

    /// Returns a whole number of at most 32 bits.
    pub(super) fn small(self) -> Reading<u32> {
        match self.whole() {
            Reading::Now(number) => u32::try_from(number).map_err(|_| Absence::Unknown).into(),
            other => other.map(|_| 0),
        }
    }

    /// Returns an amount of memory in bytes. The cell is in MiB.
    pub(super) fn mebibytes(self) -> Reading<u64> {
        match self.whole() {
            Reading::Now(number) => number.checked_mul(MIB).ok_or(Absence::Unknown).into(),
            other => other,
        }
    }

    /// Returns which of two words the cell contains.
    pub(super) fn is(self, yes: &str, no: &str) -> Reading<bool> {
        let truth = |text: &str| match text {
            text if text == yes => Ok(true),
            text if text == no => Ok(false),
            _ => Err(Absence::Unknown),
        };
        self.text().and_then(truth).into()
    }

    /// Returns a bit mask such as `0x0000000000000004`.
    pub(super) fn mask(self) -> Reading<u64> {
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
    fn what_is_no_value_says_why() {
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
            assert_eq!(Cell(text).number(), Reading::Absent(reason), "{text}");
        }
    }

    #[test]
    fn values_have_their_units() {
        assert_eq!(Cell(" 71.15").number(), Reading::Now(71.15));
        assert_eq!(Cell("71.15 W").number(), Reading::Now(71.15));
        assert_eq!(Cell("81559").mebibytes(), Reading::Now(81_559 * MIB));
        assert_eq!(
            Cell("99999999999999999").mebibytes(),
            Reading::Absent(Absence::Unknown)
        );
        assert_eq!(Cell("-1").whole(), Reading::Absent(Absence::Unknown));
        assert_eq!(
            Cell("4294967296").small(),
            Reading::Absent(Absence::Unknown)
        );
        assert_eq!(Cell("0x0000000000000004").mask(), Reading::Now(4));
        assert_eq!(
            Cell("Enabled").is("Enabled", "Disabled"),
            Reading::Now(true)
        );
        assert_eq!(
            Cell("Maybe").is("Enabled", "Disabled"),
            Reading::Absent(Absence::Unknown)
        );
    }
}
