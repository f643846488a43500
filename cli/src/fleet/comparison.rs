//! Filter words that compare a reading with a number, such as `memory>80GiB`, `utilization<10`, or
//! `idle>=1h`.

use gpumon_fleet::{
    Rows,
    model::{MEMORY_TOTAL, MEMORY_USED, POWER, POWER_LIMIT, TEMPERATURE, UTILIZATION},
};
use gpumon_probe::{model::fields::Unit, units::Amount};

/// A quantity that can be compared.
#[derive(Debug, Clone, Copy)]
enum Quantity {
    Utilization,
    Memory,
    Left,
    Power,
    Temperature,
    Idle,
}

/// The name of a quantity in a filter.
struct Word {
    name: &'static str,
    quantity: Quantity,
    /// The unit of its readings.
    unit: Unit,
    /// The unit of numbers without a unit.
    default_unit: &'static str,
    /// The accepted units, for error messages.
    units: &'static str,
}

const fn word(
    name: &'static str,
    quantity: Quantity,
    unit: Unit,
    default_unit: &'static str,
    units: &'static str,
) -> Word {
    Word {
        name,
        quantity,
        unit,
        default_unit,
        units,
    }
}

const WORDS: [Word; 6] = [
    word(
        "utilization",
        Quantity::Utilization,
        Unit::Percent,
        "%",
        "%",
    ),
    word(
        "memory",
        Quantity::Memory,
        Unit::Bytes,
        "GiB",
        "%, MiB, GiB, TiB",
    ),
    word(
        "left",
        Quantity::Left,
        Unit::Bytes,
        "GiB",
        "%, MiB, GiB, TiB",
    ),
    word("power", Quantity::Power, Unit::Watts, "W", "%, W, kW"),
    word(
        "temperature",
        Quantity::Temperature,
        Unit::Celsius,
        "C",
        "C, F",
    ),
    word("idle", Quantity::Idle, Unit::Seconds, "min", "s, min, h, d"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    More,
    AtLeast,
    Less,
    AtMost,
    Equal,
}

/// The operators. Longer ones come first, because they contain shorter ones.
const OPERATORS: [(&str, Operator); 5] = [
    (">=", Operator::AtLeast),
    ("<=", Operator::AtMost),
    (">", Operator::More),
    ("<", Operator::Less),
    ("=", Operator::Equal),
];

#[derive(Debug, Clone, Copy)]
pub(crate) struct Comparison {
    quantity: Quantity,
    operator: Operator,
    than: f64,
    /// Whether the number is a share of the quantity's maximum.
    is_share: bool,
}

impl Comparison {
    /// Parses a word. Returns `None` if it is not a comparison.
    ///
    /// # Errors
    /// Returns the mistake and how to correct it.
    pub(crate) fn parse(word: &str) -> Result<Option<Self>, String> {
        let at = word.find(['<', '>', '=']);
        let Some((name, rest)) = at.map(|at| word.split_at(at)) else {
            return Ok(None);
        };
        if name.is_empty() || !name.bytes().all(|letter| letter.is_ascii_alphabetic()) {
            return Ok(None);
        }
        let operator = OPERATORS
            .iter()
            .find_map(|(sign, operator)| Some((sign, operator, rest.strip_prefix(sign)?)));
        let Some((sign, operator, right)) = operator else {
            return Ok(None);
        };
        let Some(known) = WORDS.iter().find(|known| known.name.starts_with(name)) else {
            let names = WORDS.map(|known| known.name).join(", ");
            return Err(format!(
                "{word}: nothing is called {name}. Compare {names}."
            ));
        };
        // The web page parses the same grammar, which has no exponents.
        let unit_at = right.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let (digits, unit) = right.split_at(unit_at.unwrap_or(right.len()));
        let number = digits
            .parse()
            .map_err(|_| format!("{word}: a number has to follow {sign}, as in memory>80GiB."))?;
        let amount = Amount {
            number,
            unit: unit.to_owned(),
        };
        let is_share = amount.unit == "%" && known.quantity.whole().is_some();
        let than = if is_share {
            Some(amount.number)
        } else {
            known.convert(&amount)
        };
        let than = than.ok_or_else(|| {
            let unit = amount.unit.to_lowercase();
            format!("{word}: there is no unit {unit} here. Use {}.", known.units)
        })?;
        Ok(Some(Self {
            quantity: known.quantity,
            operator: *operator,
            than,
            is_share,
        }))
    }

    /// Returns `true` if the row's reading matches. An absent reading matches no comparison.
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
        let read = |id| rows.value(id, row);
        match self {
            Self::Utilization => read(UTILIZATION),
            Self::Memory => read(MEMORY_USED),
            Self::Left => Some(read(MEMORY_TOTAL)? - read(MEMORY_USED)?),
            Self::Power => read(POWER),
            Self::Temperature => read(TEMPERATURE),
            Self::Idle => rows.idle_s(row),
        }
    }

    fn share(self, rows: &Rows<'_>, row: usize) -> Option<f64> {
        Some(self.value(rows, row)? / rows.value(self.whole()?, row)? * 100.0)
    }

    /// Returns the reading that is the maximum of this quantity.
    fn whole(self) -> Option<&'static str> {
        match self {
            Self::Memory | Self::Left => Some(MEMORY_TOTAL),
            Self::Power => Some(POWER_LIMIT),
            Self::Utilization | Self::Temperature | Self::Idle => None,
        }
    }
}

impl Word {
    /// Converts an amount to the unit of the readings. Returns `None` if its unit belongs to
    /// another quantity.
    fn convert(&self, amount: &Amount) -> Option<f64> {
        let Amount { number, unit } = amount;
        let unit = match (self.unit, unit.to_lowercase().as_str()) {
            (_, "") | (Unit::Bytes, "g") => self.default_unit.to_owned(),
            (Unit::Celsius, "f" | "°f") => return Some((number - 32.0) / 1.8),
            (_, unit) => unit.to_owned(),
        };
        let amount = Amount {
            number: *number,
            unit,
        };
        amount.convert_to(self.unit)
    }
}
