//! One field of some buckets, in few bytes.
//!
//! Gauges have four digits, so that all of a column are whole numbers of one power of ten. Each is written as its
//! difference to the one before; the least and the largest as theirs to the mean.

use crate::grid::Stat;

/// No value at all; one that never moved; whole numbers; numbers that are none of a power of ten.
const EMPTY: u8 = 0;
const CONSTANT: u8 = 1;
const DECIMAL: u8 = 2;
const RAW: u8 = 3;

/// Powers of ten that are tried, the largest first.
const POWERS: std::ops::RangeInclusive<i32> = -9..=9;

/// Larger ones would lose digits on the way through a float.
const MOST: f64 = 9.0e15;

/// Writes a column.
pub(super) fn write(column: &[Option<Stat>], bytes: &mut Vec<u8>) {
    let known = || column.iter().flatten();
    let Some(first) = known().next() else {
        return bytes.push(EMPTY);
    };
    let numbers = || known().flat_map(|stat| [stat.value, stat.min, stat.max]);
    let power = power_of_all(numbers());
    let is_constant = known().count() == column.len()
        && numbers().all(|number| number.total_cmp(&first.value).is_eq());
    bytes.push(match power {
        None => RAW,
        Some(_) if is_constant => CONSTANT,
        Some(_) => DECIMAL,
    });
    if let Some(power) = power {
        bytes.push((power - POWERS.start()) as u8);
        if is_constant {
            return write_signed(whole(first.value, power) as i64, bytes);
        }
    }
    for eight in column.chunks(8) {
        bytes.push(eight.iter().enumerate().fold(0, |bits, (bit, stat)| {
            bits | (u8::from(stat.is_some()) << bit)
        }));
    }
    let Some(power) = power else {
        return numbers().for_each(|number| bytes.extend(number.to_le_bytes()));
    };
    let whole = |number: f64| whole(number, power) as i64;
    let mut before = 0;
    for stat in known() {
        write_signed(whole(stat.value) - before, bytes);
        before = whole(stat.value);
    }
    known().for_each(|stat| write_signed(whole(stat.value) - whole(stat.min), bytes));
    known().for_each(|stat| write_signed(whole(stat.max) - whole(stat.value), bytes));
}

/// Reads a column of so many; `None` where the bytes are none of [`write`].
pub(super) fn read(mut bytes: &[u8], length: usize) -> Option<Vec<Option<Stat>>> {
    let bytes = &mut bytes;
    let kind = byte(bytes)?;
    if kind == EMPTY {
        return Some(vec![None; length]);
    }
    let power = if kind == RAW {
        0
    } else {
        i32::from(byte(bytes)?) + POWERS.start()
    };
    let number = |whole: i64| {
        let unit = 10_f64.powi(power.abs());
        if power < 0 {
            whole as f64 / unit
        } else {
            whole as f64 * unit
        }
    };
    if kind == CONSTANT {
        let value = number(signed(bytes)?);
        return Some(vec![Some(Stat::of(value)); length]);
    }
    let bits: Vec<u8> = (0..length.div_ceil(8))
        .map(|_| byte(bytes))
        .collect::<Option<_>>()?;
    let is_known = |place: usize| bits[place / 8] >> (place % 8) & 1 == 1;
    let count = (0..length).filter(|place| is_known(*place)).count();
    let mut stats = Vec::with_capacity(count);
    if kind == RAW {
        for _ in 0..count {
            let mut float = || {
                let (own, rest) = bytes.split_first_chunk::<8>()?;
                *bytes = rest;
                Some(f64::from_le_bytes(*own))
            };
            stats.push(Stat {
                value: float()?,
                min: float()?,
                max: float()?,
            });
        }
    } else {
        let mut before = 0;
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            before += signed(bytes)?;
            values.push(before);
        }
        let below: Vec<_> = (0..count).map(|_| signed(bytes)).collect::<Option<_>>()?;
        let above: Vec<_> = (0..count).map(|_| signed(bytes)).collect::<Option<_>>()?;
        let parts = values.into_iter().zip(below).zip(above);
        stats.extend(parts.map(|((value, below), above)| Stat {
            value: number(value),
            min: number(value - below),
            max: number(value + above),
        }));
    }
    let mut stats = stats.into_iter();
    Some(
        (0..length)
            .map(|place| if is_known(place) { stats.next() } else { None })
            .collect(),
    )
}

/// The largest power of ten that all of them are whole multiples of; `None` where there is none.
fn power_of_all(numbers: impl Iterator<Item = f64>) -> Option<i32> {
    let mut power = *POWERS.end();
    for number in numbers {
        while !is_whole(number, power) {
            power -= 1;
            if !POWERS.contains(&power) {
                return None;
            }
        }
    }
    Some(power)
}

fn is_whole(number: f64, power: i32) -> bool {
    let whole = whole(number, power);
    let unit = 10_f64.powi(power.abs());
    let again = if power < 0 {
        whole / unit
    } else {
        whole * unit
    };
    again.total_cmp(&number).is_eq() && whole.abs() < MOST
}

fn whole(number: f64, power: i32) -> f64 {
    let unit = 10_f64.powi(power.abs());
    (if power < 0 {
        number * unit
    } else {
        number / unit
    })
    .round()
}

fn byte(bytes: &mut &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*first)
}

/// A whole number, seven bits a byte, the small ones of both signs in the fewest.
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
            // Whatever is cut off, it is noticed or read, and never a panic.
            let _ = read(&bytes[..short], column.len());
        }
        bytes.len()
    }

    #[test]
    fn what_is_written_is_read_again_to_the_last_digit() {
        let stat = |value: f64| {
            let of = |factor: f64| rounded(value * factor);
            Some(Stat {
                value: of(1.0),
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
