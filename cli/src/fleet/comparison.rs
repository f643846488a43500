//! Words that compare a reading with a number: `memory>80GiB`, `utilization<10`, `idle>=1h`.

use super::rows::{Measured, Rows};
use crate::options::bytes_in;

/// What can be compared.
#[derive(Debug, Clone, Copy)]
enum Quantity {
    Utilization,
    Memory,
    Left,
    Power,
    Temperature,
    Idle,
}

const QUANTITIES: [(&str, Quantity); 6] = [
    ("utilization", Quantity::Utilization),
    ("memory", Quantity::Memory),
    ("left", Quantity::Left),
    ("power", Quantity::Power),
    ("temperature", Quantity::Temperature),
    ("idle", Quantity::Idle),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    More,
    AtLeast,
    Less,
    AtMost,
    Equal,
}

/// Longer ones first.
const OPERATORS: [(&str, Operator); 5] = [
    (">=", Operator::AtLeast),
    ("<=", Operator::AtMost),
    (">", Operator::More),
    ("<", Operator::Less),
    ("=", Operator::Equal),
];

/// One comparison.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Comparison {
    quantity: Quantity,
    operator: Operator,
    than: f64,
    /// Whether it is a share of what there could be.
    is_share: bool,
}

impl Comparison {
    /// `None` where a word compares nothing.
    ///
    /// # Errors
    /// What is wrong with it, and the cure.
    pub(crate) fn parse(word: &str) -> Result<Option<Self>, String> {
        let at = word.find(['<', '>', '=']);
        let Some((name, rest)) = at.map(|at| word.split_at(at)) else {
            return Ok(None);
        };
        if name.is_empty() || !name.bytes().all(|letter| letter.is_ascii_alphabetic()) {
            return Ok(None);
        }
        let known = OPERATORS
            .iter()
            .find_map(|(sign, operator)| Some((sign, operator, rest.strip_prefix(sign)?)));
        let Some((sign, operator, right)) = known else {
            return Ok(None);
        };
        let Some((_, quantity)) = QUANTITIES.iter().find(|(known, _)| known.starts_with(name))
        else {
            let names = QUANTITIES.map(|(name, _)| name).join(", ");
            return Err(format!("{word}: nothing is called {name}; compare {names}"));
        };
        let unit_at = right
            .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
            .unwrap_or(right.len());
        let (digits, unit) = right.split_at(unit_at);
        let number: f64 = digits
            .parse()
            .map_err(|_| format!("{word}: a number has to follow {sign}, as in memory>80GiB"))?;
        let is_share = unit == "%" && !matches!(quantity, Quantity::Utilization);
        let unit = unit.to_lowercase();
        let than = if is_share {
            quantity.has_share().then_some(number)
        } else {
            quantity.in_unit(number, &unit)
        };
        let than = than.ok_or_else(|| {
            format!(
                "{word}: there is no unit {unit} here; use {}",
                quantity.units()
            )
        })?;
        Ok(Some(Self {
            quantity: *quantity,
            operator: *operator,
            than,
            is_share,
        }))
    }

    /// What nothing tells of matches nothing.
    pub(crate) fn matches(self, rows: &Rows<'_>, row: usize) -> bool {
        let value = if self.is_share {
            self.quantity.share(rows, row)
        } else {
            self.quantity.value(rows, row)
        };
        value.is_some_and(|value| match self.operator {
            Operator::More => value > self.than,
            Operator::AtLeast => value >= self.than,
            Operator::Less => value < self.than,
            Operator::AtMost => value <= self.than,
            Operator::Equal => (value - self.than).abs() < f64::EPSILON,
        })
    }
}

impl Quantity {
    fn value(self, rows: &Rows<'_>, row: usize) -> Option<f64> {
        let read = |measured| rows.reading(measured, row);
        match self {
            Self::Utilization => read(Measured::Utilization),
            Self::Memory => read(Measured::MemoryUsed),
            Self::Left => Some(read(Measured::MemoryTotal)? - read(Measured::MemoryUsed)?),
            Self::Power => read(Measured::Power),
            Self::Temperature => read(Measured::Temperature),
            Self::Idle => rows.idle_s(row),
        }
    }

    fn share(self, rows: &Rows<'_>, row: usize) -> Option<f64> {
        let of = if matches!(self, Self::Power) {
            Measured::PowerLimit
        } else {
            Measured::MemoryTotal
        };
        Some(self.value(rows, row)? / rows.reading(of, row)? * 100.0)
    }

    fn has_share(self) -> bool {
        matches!(self, Self::Memory | Self::Left | Self::Power)
    }

    /// Converts a number to the unit of the readings; `None` if its unit is for another quantity.
    fn in_unit(self, number: f64, unit: &str) -> Option<f64> {
        if matches!(self, Self::Temperature) && matches!(unit, "f" | "°f") {
            return Some((number - 32.0) / 1.8);
        }
        Some(number * self.scale(unit)?)
    }

    fn scale(self, unit: &str) -> Option<f64> {
        match (self, unit) {
            (Self::Utilization, "" | "%")
            | (Self::Power, "" | "w")
            | (Self::Temperature, "" | "c" | "°c")
            | (Self::Idle, "s") => Some(1.0),
            (Self::Memory | Self::Left, "" | "g") => bytes_in("gib"),
            (Self::Memory | Self::Left, unit) => bytes_in(unit),
            (Self::Power, "kw") => Some(1000.0),
            (Self::Idle, "" | "m" | "min") => Some(60.0),
            (Self::Idle, "h") => Some(3600.0),
            (Self::Idle, "d") => Some(86_400.0),
            _ => None,
        }
    }

    fn units(self) -> &'static str {
        match self {
            Self::Utilization => "%",
            Self::Memory | Self::Left => "%, MiB, GiB or TiB",
            Self::Power => "%, W or kW",
            Self::Temperature => "C or F",
            Self::Idle => "s, min, h or d",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::testing::{Example, fleet};

    #[test]
    fn readings_are_compared_in_their_units() {
        let gpu = Example {
            busy: Some(40.0),
            used_gib: Some(60.0),
            total_gib: 80.0,
            watts: Some(350.0),
            celsius: None,
            idle_s: Some(5400.0),
            ..Example::default()
        };
        let fleet = fleet(&[("node1", &[gpu])]);
        let rows = Rows::new(&fleet);
        let holds = |word: &str| Comparison::parse(word).unwrap().unwrap().matches(&rows, 0);
        for word in [
            "memory>59GiB",
            "mem>=60",
            "memory=75%",
            "left<21",
            "left>=25%",
            "power=50%",
            "power>0.3kW",
            "utilization<50%",
            "util>30",
            "idle>=1h",
            "idle<2h",
            "idle=90",
        ] {
            assert!(holds(word), "{word}");
        }
        for word in [
            "memory>60",
            "power<100W",
            "temperature>0",
            "temperature<200",
            "idle>1d",
        ] {
            assert!(!holds(word), "{word}");
        }
        for (word, cure) in [
            ("speed>3", "compare utilization, memory"),
            ("memory>", "a number has to follow"),
            ("memory>x", "a number has to follow"),
            ("memory>3W", "use %, MiB"),
            ("idle>3%", "use s, min"),
        ] {
            let error = Comparison::parse(word).unwrap_err();
            assert!(error.contains(cure), "{error}");
        }
        for word in ["node1", "user:ana", ">3", "a1>3"] {
            assert!(Comparison::parse(word).unwrap().is_none(), "{word}");
        }
    }
}
