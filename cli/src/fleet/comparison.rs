//! Filter words that compare a reading with a number, such as `memory>80GiB`, `utilization<10`, or
//! `idle>=1h`.

use gpumon_fleet::{
    Rows,
    model::{MEMORY_TOTAL, MEMORY_USED, POWER, POWER_LIMIT, TEMPERATURE, UTILIZATION},
};
use gpumon_probe::{model::fields::Unit, units::Amount};

/// A quantity that a filter can compare.
#[derive(Debug, Clone, Copy)]
enum Quantity {
    Utilization,
    Memory,
    Left,
    Power,
    Temperature,
    Idle,
}

/// The name of a quantity in a filter, and its units.
struct QuantityName {
    name: &'static str,
    quantity: Quantity,
    /// The unit of the quantity's readings.
    unit: Unit,
    /// The unit that a typed number has by default.
    default_unit: &'static str,
    /// The accepted units, as listed in error messages.
    units: &'static str,
}

const fn define_quantity_name(
    name: &'static str,
    quantity: Quantity,
    unit: Unit,
    default_unit: &'static str,
    units: &'static str,
) -> QuantityName {
    QuantityName {
        name,
        quantity,
        unit,
        default_unit,
        units,
    }
}

const QUANTITY_NAMES: [QuantityName; 6] = [
    define_quantity_name(
        "utilization",
        Quantity::Utilization,
        Unit::Percent,
        "%",
        "%",
    ),
    define_quantity_name(
        "memory",
        Quantity::Memory,
        Unit::Bytes,
        "GiB",
        "%, MiB, GiB, TiB",
    ),
    define_quantity_name(
        "left",
        Quantity::Left,
        Unit::Bytes,
        "GiB",
        "%, MiB, GiB, TiB",
    ),
    define_quantity_name("power", Quantity::Power, Unit::Watts, "W", "%, W, kW"),
    define_quantity_name(
        "temperature",
        Quantity::Temperature,
        Unit::Celsius,
        "C",
        "C, F",
    ),
    define_quantity_name("idle", Quantity::Idle, Unit::Seconds, "min", "s, min, h, d"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    More,
    AtLeast,
    Less,
    AtMost,
    Equal,
}

/// The operators. `>=` and `<=` come first, because they start like `>` and `<`.
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
    /// Whether the number is a percentage of the quantity's maximum.
    is_share: bool,
}

impl Comparison {
    /// Parses a comparison. Returns `None` if the word is not a comparison.
    ///
    /// # Errors
    /// Returns a message that explains the mistake and how to correct it.
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
        let Some(known) = QUANTITY_NAMES
            .iter()
            .find(|known| known.name.starts_with(name))
        else {
            let names = QUANTITY_NAMES.map(|known| known.name).join(", ");
            return Err(format!(
                "{word}: unknown quantity {name}. Valid quantities: {names}."
            ));
        };
        // Exponents are not accepted, because the web page parses the same grammar.
        let unit_at = right.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let (digits, unit) = right.split_at(unit_at.unwrap_or(right.len()));
        let number = digits.parse().map_err(|_| {
            format!("{word}: a number must follow {sign}, for example memory>80GiB.")
        })?;
        let amount = Amount {
            number,
            unit: unit.to_owned(),
        };
        let is_share = amount.unit == "%" && known.quantity.maximum_id().is_some();
        let than = if is_share {
            Some(amount.number)
        } else {
            known.convert_amount(&amount)
        };
        let than = than.ok_or_else(|| {
            let unit = amount.unit.to_lowercase();
            format!("{word}: invalid unit {unit}. Valid units: {}.", known.units)
        })?;
        Ok(Some(Self {
            quantity: known.quantity,
            operator: *operator,
            than,
            is_share,
        }))
    }

    /// Returns `true` if the reading in the row matches. A comparison with an absent reading never
    /// matches.
    pub(crate) fn matches_row(self, rows: &Rows<'_>, row: usize) -> bool {
        let value = if self.is_share {
            self.quantity.read_share(rows, row)
        } else {
            self.quantity.read_value(rows, row)
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
    fn read_value(self, rows: &Rows<'_>, row: usize) -> Option<f64> {
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

    fn read_share(self, rows: &Rows<'_>, row: usize) -> Option<f64> {
        Some(self.read_value(rows, row)? / rows.value(self.maximum_id()?, row)? * 100.0)
    }

    /// Returns the ID of the metric that contains the maximum of this quantity.
    fn maximum_id(self) -> Option<&'static str> {
        match self {
            Self::Memory | Self::Left => Some(MEMORY_TOTAL),
            Self::Power => Some(POWER_LIMIT),
            Self::Utilization | Self::Temperature | Self::Idle => None,
        }
    }
}

impl QuantityName {
    /// Converts an amount to the unit of the readings. Returns `None` if the amount has a unit of
    /// another quantity.
    fn convert_amount(&self, amount: &Amount) -> Option<f64> {
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
