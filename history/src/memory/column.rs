//! Compression of one field of several buckets.
//!
//! Gauges have four significant digits, so that all values of a column are integer multiples of one
//! power of ten. Each mean is written as its difference to the one before, the minimum and maximum
//! as their differences to the mean.

use gpumon_probe::stat::Stat;

/// The first byte of a column: without values, with one constant value, or with varying values.
const EMPTY: u8 = 0;
const CONSTANT: u8 = 1;
const VARIED: u8 = 2;

/// The possible powers of ten, which are tried from the largest.
const POWERS: std::ops::RangeInclusive<i32> = -9..=9;

/// The value in place of a power for numbers that are not multiples of any: their bits are written
/// instead.
const BITS: i32 = -10;

/// The limit of integers. Larger ones lose digits when they are converted to a float.
const MOST: f64 = 9.0e15;

/// Appends a compressed column to `bytes`.
pub(super) fn write(column: &[Option<Stat>], bytes: &mut Vec<u8>) {
    let known = || column.iter().flatten();
    let Some(first) = known().next() else {
        return bytes.push(EMPTY);
    };
    let numbers = || known().flat_map(|stat| [stat.mean, stat.min, stat.max]);
    let power = power_of_all(numbers());
    let is_constant = known().count() == column.len()
        && numbers().all(|number| number.total_cmp(&first.mean).is_eq());
    bytes.push(if is_constant { CONSTANT } else { VARIED });
    bytes.push((power - BITS) as u8);
    if is_constant {
        return write_signed(to_whole(first.mean, power), bytes);
    }
    for eight in column.chunks(8) {
        bytes.push(eight.iter().enumerate().fold(0, |bits, (bit, stat)| {
            bits | (u8::from(stat.is_some()) << bit)
        }));
    }
    let whole = |number: f64| to_whole(number, power);
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
/// [`write`].
pub(super) fn read(mut bytes: &[u8], length: usize) -> Option<Vec<Option<Stat>>> {
    let bytes = &mut bytes;
    let kind = byte(bytes)?;
    if kind == EMPTY {
        return Some(vec![None; length]);
    }
    let power = i32::from(byte(bytes)?) + BITS;
    if kind == CONSTANT {
        let value = from_whole(signed(bytes)?, power);
        return Some(vec![Some(Stat::of(value)); length]);
    }
    let bits: Vec<u8> = (0..length.div_ceil(8))
        .map(|_| byte(bytes))
        .collect::<Option<_>>()?;
    let is_known = |place: usize| bits[place / 8] >> (place % 8) & 1 == 1;
    let count = (0..length).filter(|place| is_known(*place)).count();
    let mut signed = || -> Option<Vec<i64>> { (0..count).map(|_| signed(bytes)).collect() };
    let (steps, below, above) = (signed()?, signed()?, signed()?);
    let mut value = 0_i64;
    let stats = steps.into_iter().zip(below).zip(above);
    let mut stats = stats.map(|((step, below), above)| {
        value = value.wrapping_add(step);
        Stat {
            mean: from_whole(value, power),
            min: from_whole(value.wrapping_sub(below), power),
            max: from_whole(value.wrapping_add(above), power),
        }
    });
    Some(
        (0..length)
            .map(|place| if is_known(place) { stats.next() } else { None })
            .collect(),
    )
}

/// Returns the largest power of ten that divides all numbers, or [`BITS`] if there is none.
fn power_of_all(numbers: impl Iterator<Item = f64>) -> i32 {
    let mut power = *POWERS.end();
    for known in numbers {
        let is_whole = |power| {
            let whole = to_whole(known, power);
            from_whole(whole, power).total_cmp(&known).is_eq() && (whole as f64).abs() < MOST
        };
        while !is_whole(power) {
            power -= 1;
            if !POWERS.contains(&power) {
                return BITS;
            }
        }
    }
    power
}

fn to_whole(number: f64, power: i32) -> i64 {
    if power == BITS {
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

fn from_whole(whole: i64, power: i32) -> f64 {
    if power == BITS {
        return f64::from_bits(whole.cast_unsigned());
    }
    let unit = 10_f64.powi(power.abs());
    if power < 0 {
        whole as f64 / unit
    } else {
        whole as f64 * unit
    }
}

fn byte(bytes: &mut &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*first)
}

/// Appends an integer with seven bits per byte (zigzag encoding: small absolute values need few
/// bytes).
pub(super) fn write_signed(number: i64, bytes: &mut Vec<u8>) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

pub(super) fn signed(bytes: &mut &[u8]) -> Option<i64> {
    let (mut rest, mut shift) = (0_u64, 0);
    loop {
        let next = byte(bytes)?;
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
    use crate::wanted::rounded;

    fn packed(column: &[Option<Stat>]) -> usize {
        let mut bytes = Vec::new();
        write(column, &mut bytes);
        assert_eq!(read(&bytes, column.len()).as_deref(), Some(column));
        for short in 0..bytes.len() {
            // Truncated bytes must not cause a panic.
            let _ = read(&bytes[..short], column.len());
        }
        bytes.len()
    }

    #[test]
    fn what_is_written_is_read_again_to_the_last_digit() {
        let stat = |value: f64| {
            let of = |factor: f64| rounded(value * factor);
            Some(Stat {
                mean: of(1.0),
                min: of(0.9),
                max: of(1.2),
            })
        };
        assert_eq!(packed(&[None; 30]), 1);
        assert!(packed(&[Some(Stat::of(80_000_000_000.0)); 30]) <= 5);
        let watts: Vec<_> = (0..30)
            .map(|at| stat(534.4 + f64::from(at % 7) * 3.1))
            .collect();
        assert!(packed(&watts) < 30 * 6, "{}", packed(&watts));
        let gaps: Vec<_> = (0..30)
            .map(|at| {
                if at % 3 == 0 {
                    None
                } else {
                    stat(f64::from(at) * 0.001_234_5)
                }
            })
            .collect();
        packed(&gaps);
        packed(&[
            stat(1.377e11),
            stat(0.0),
            stat(12.0),
            stat(-7.5),
            stat(0.012_35),
        ]);
        packed(&[
            Some(Stat::of(123_456_716.123)),
            Some(Stat::of(123_456_724.5)),
        ]);
        for strange in [f64::MAX, f64::MIN_POSITIVE, 1.0 / 3.0, 1e300, -0.0, 9.1e15] {
            packed(&[Some(Stat::of(strange)), None, Some(Stat::of(1.0))]);
        }
    }
}
