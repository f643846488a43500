//! Conversions and formats that several forms of output share.

use jiff::{Timestamp, Zoned};

pub(crate) const BYTES_PER_MIB: i128 = 1 << 20;

/// The format of a date and time as in `Mon Nov 30 05:26:24 2026`, for [`Zoned::strftime`].
pub(crate) const DATE_AND_TIME: &str = "%a %b %e %H:%M:%S %Y";

/// Converts bytes to MiB, rounded up.
pub(crate) fn round_up_to_mib(bytes: i128) -> i128 {
    (bytes + BYTES_PER_MIB - 1) / BYTES_PER_MIB
}

/// Converts a time in microseconds since 1970 to the time zone of `now`. Returns `None` if the time
/// is out of range.
pub(crate) fn convert_to_local_time(microseconds: i128, now: &Zoned) -> Option<Zoned> {
    let time = Timestamp::from_microsecond(i64::try_from(microseconds).ok()?).ok()?;
    Some(time.to_zoned(now.time_zone().clone()))
}

/// Formats a UUID that is given as two big-endian halves.
pub(crate) fn format_uuid(high: i128, low: i128) -> String {
    let digits = format!("{:016x}{:016x}", high as u64, low as u64);
    [
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..],
    ]
    .join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuid_words_are_formatted_in_byte_order() {
        assert_eq!(
            format_uuid(0x0011_2233_4455_6677, 0x8899_aabb_ccdd_eeff),
            "00112233-4455-6677-8899-aabbccddeeff"
        );
    }
}
