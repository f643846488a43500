//! How full a device is, as a text that can be read back.

use std::{fmt, str::FromStr};

const GIB: f64 = (1_u64 << 30) as f64;

/// How full a device is, in GiB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// Held by anybody.
    pub used_gib: f64,
    /// All of it.
    pub total_gib: f64,
    /// What stays free for others.
    pub reserve_gib: f64,
}

impl Level {
    pub(crate) fn of(free_bytes: u64, total_bytes: u64, reserve_bytes: u64) -> Self {
        let gib = |bytes: u64| bytes as f64 / GIB;
        let used_gib = gib(total_bytes.saturating_sub(free_bytes));
        Self { used_gib, total_gib: gib(total_bytes), reserve_gib: gib(reserve_bytes) }
    }

    /// From 0 to 1.
    pub fn share(&self) -> f64 {
        if self.total_gib > 0.0 { (self.used_gib / self.total_gib).clamp(0.0, 1.0) } else { 0.0 }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { used_gib, total_gib, reserve_gib } = self;
        write!(f, "{used_gib:.2} of {total_gib:.2} GiB used, {reserve_gib:.2} GiB stay free for others")
    }
}

/// That a text says of no device how full it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoLevel;

impl FromStr for Level {
    type Err = NoLevel;

    fn from_str(text: &str) -> Result<Self, NoLevel> {
        let read = || {
            let (used, rest) = text.split_once(" of ")?;
            let (total, rest) = rest.split_once(" GiB used, ")?;
            let (reserve, _) = rest.split_once(" GiB stay free")?;
            let number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite());
            Some(Self { used_gib: number(used)?, total_gib: number(total)?, reserve_gib: number(reserve)? })
        };
        read().ok_or(NoLevel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_it_can_be_read_back() {
        let level = Level::of(60 << 30, 140 << 30, (4 << 30) + (1 << 28));
        assert_eq!(level.to_string(), "80.00 of 140.00 GiB used, 4.25 GiB stay free for others");
        assert_eq!(level.to_string().parse(), Ok(level));
        assert!((level.share() - 80.0 / 140.0).abs() < 1e-9);
        for text in ["", "copy, 3 of 10", "nan of 140.00 GiB used, 4.25 GiB stay free"] {
            assert_eq!(text.parse::<Level>(), Err(NoLevel), "{text}");
        }
    }
}
