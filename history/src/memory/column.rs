//! Compression of one field's values in several buckets.
//!
//! Gauges have four significant digits, so that all values of a column are integer multiples of one
//! power of ten. Each mean is stored as its difference from the previous mean, and the minimum and
//! maximum as their differences from the mean.

use gpumon_probe::stat::Stat;

/// The first byte of a column describes its contents. `EMPTY` means no values, `CONSTANT` one
/// repeated value, and `VARIED` varying values.
const EMPTY: u8 = 0;
const CONSTANT: u8 = 1;
const VARIED: u8 = 2;

/// The possible powers of ten, tried from the largest to the smallest.
const POWERS: std::ops::RangeInclusive<i32> = -9..=9;

/// The value that is written instead of the power of ten if the numbers have no common power. Each
/// number is then stored as its unchanged bits.
const RAW_BITS: i32 = -10;

/// The upper limit of the integers in a column. An `f64` cannot represent all larger integers
/// exactly.
const MAX_INTEGER: f64 = 9.0e15;

/// Appends a compressed column to `bytes`.
pub(super) fn write_column(column: &[Option<Stat>], bytes: &mut Vec<u8>) {
    let known = || column.iter().flatten();
    let Some(first) = known().next() else {
        return bytes.push(EMPTY);
    };
    let numbers = || known().flat_map(|stat| [stat.mean, stat.min, stat.max]);
    let power = find_common_power(numbers());
    let is_constant = known().count() == column.len()
        && numbers().all(|number| number.total_cmp(&first.mean).is_eq());
    bytes.push(if is_constant { CONSTANT } else { VARIED });
    bytes.push((power - RAW_BITS) as u8);
    if is_constant {
        return write_signed(to_scaled_integer(first.mean, power), bytes);
    }
    for eight in column.chunks(8) {
        bytes.push(eight.iter().enumerate().fold(0, |bits, (bit, stat)| {
            bits | (u8::from(stat.is_some()) << bit)
        }));
    }
    let whole = |number: f64| to_scaled_integer(number, power);
    let mut before = 0;
    for stat in known() {
        write_signed(whole(stat.mean).wrapping_sub(before), bytes);
        before = whole(stat.mean);
    }
    known().for_each(|stat| {
        write_signed(whole(stat.mean).wrapping_sub(whole(stat.min)), bytes);
    });
    known().for_each(|stat| {
        write_signed(whole(stat.max).wrapping_sub(whole(stat.mean)), bytes);
    });
}

/// Decompresses a column of `length` values. Returns `None` if the bytes were not written by
/// [`write_column`].
pub(super) fn read_column(mut bytes: &[u8], length: usize) -> Option<Vec<Option<Stat>>> {
    let bytes = &mut bytes;
    let kind = read_byte(bytes)?;
    if kind == EMPTY {
        return Some(vec![None; length]);
    }
    let power = i32::from(read_byte(bytes)?) + RAW_BITS;
    if kind == CONSTANT {
        let value = from_scaled_integer(read_signed(bytes)?, power);
        return Some(vec![Some(Stat::from_value(value)); length]);
    }
    let bits: Vec<u8> = (0..length.div_ceil(8))
        .map(|_| read_byte(bytes))
        .collect::<Option<_>>()?;
    let is_known = |place: usize| bits[place / 8] >> (place % 8) & 1 == 1;
    let count = (0..length).filter(|place| is_known(*place)).count();
    let mut signed = || -> Option<Vec<i64>> { (0..count).map(|_| read_signed(bytes)).collect() };
    let (steps, below, above) = (signed()?, signed()?, signed()?);
    let mut value = 0_i64;
    let stats = steps.into_iter().zip(below).zip(above);
    let mut stats = stats.map(|((step, below), above)| {
        value = value.wrapping_add(step);
        Stat {
            mean: from_scaled_integer(value, power),
            min: from_scaled_integer(value.wrapping_sub(below), power),
            max: from_scaled_integer(value.wrapping_add(above), power),
        }
    });
    Some(
        (0..length)
            .map(|place| if is_known(place) { stats.next() } else { None })
            .collect(),
    )
}

/// Returns the largest power of ten that divides all numbers, or [`RAW_BITS`] if there is none.
fn find_common_power(numbers: impl Iterator<Item = f64>) -> i32 {
    let mut power = *POWERS.end();
    for known in numbers {
        let is_whole = |power| {
            let whole = to_scaled_integer(known, power);
            from_scaled_integer(whole, power).total_cmp(&known).is_eq()
                && (whole as f64).abs() < MAX_INTEGER
        };
        while !is_whole(power) {
            power -= 1;
            if !POWERS.contains(&power) {
                return RAW_BITS;
            }
        }
    }
    power
}

fn to_scaled_integer(number: f64, power: i32) -> i64 {
    if power == RAW_BITS {
        return number.to_bits().cast_signed();
    }
    let unit = 10_f64.powi(power.abs());
    let scaled = if power < 0 {
        number * unit
    } else {
        number / unit
    };
    scaled.round() as i64
}

fn from_scaled_integer(whole: i64, power: i32) -> f64 {
    if power == RAW_BITS {
        return f64::from_bits(whole.cast_unsigned());
    }
    let unit = 10_f64.powi(power.abs());
    if power < 0 {
        whole as f64 / unit
    } else {
        whole as f64 * unit
    }
}

fn read_byte(bytes: &mut &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*first)
}

/// Appends an integer in zigzag encoding with seven bits per byte, so that small absolute values
/// need few bytes.
pub(super) fn write_signed(number: i64, bytes: &mut Vec<u8>) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

pub(super) fn read_signed(bytes: &mut &[u8]) -> Option<i64> {
    let (mut rest, mut shift) = (0_u64, 0);
    loop {
        let next = read_byte(bytes)?;
        rest |= u64::from(next & 0x7f).checked_shl(shift)?;
        if next & 0x80 == 0 {
            return Some((rest >> 1).cast_signed() ^ -(rest & 1).cast_signed());
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::round_to_four_digits;

    fn pack_and_check(column: &[Option<Stat>]) -> usize {
        let mut bytes = Vec::new();
        write_column(column, &mut bytes);
        assert_eq!(read_column(&bytes, column.len()).as_deref(), Some(column));
        for short in 0..bytes.len() {
            // Truncated bytes may be rejected, but must not cause a panic.
            let _ = read_column(&bytes[..short], column.len());
        }
        bytes.len()
    }

    #[test]
    fn column_is_read_back_exactly() {
        let stat = |value: f64| {
            let of = |factor: f64| round_to_four_digits(value * factor);
            Some(Stat {
                mean: of(1.0),
                min: of(0.9),
                max: of(1.2),
            })
        };
        assert_eq!(pack_and_check(&[None; 30]), 1);
        assert!(pack_and_check(&[Some(Stat::from_value(80_000_000_000.0)); 30]) <= 5);
        let watts: Vec<_> = (0..30)
            .map(|at| stat(534.4 + f64::from(at % 7) * 3.1))
            .collect();
        assert!(
            pack_and_check(&watts) < 30 * 6,
            "{}",
            pack_and_check(&watts)
        );
        let gaps: Vec<_> = (0..30)
            .map(|at| {
                if at % 3 == 0 {
                    None
                } else {
                    stat(f64::from(at) * 0.001_234_5)
                }
            })
            .collect();
        pack_and_check(&gaps);
        pack_and_check(&[
            stat(1.377e11),
            stat(0.0),
            stat(12.0),
            stat(-7.5),
            stat(0.012_35),
        ]);
        pack_and_check(&[
            Some(Stat::from_value(123_456_716.123)),
            Some(Stat::from_value(123_456_724.5)),
        ]);
        for strange in [f64::MAX, f64::MIN_POSITIVE, 1.0 / 3.0, 1e300, -0.0, 9.1e15] {
            pack_and_check(&[
                Some(Stat::from_value(strange)),
                None,
                Some(Stat::from_value(1.0)),
            ]);
        }
    }
}
