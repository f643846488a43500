//! The price of energy, for costs in reports.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::untrusted::escape_untrusted;

/// The maximum length of a currency's name.
const MAX_CURRENCY_CHARS: usize = 8;
const KWH_JOULES: f64 = 3.6e6;

/// The unit at the end of a price, after a slash.
const UNIT: &str = "kWh";

/// The price of a kilowatt hour, such as `0.30/kWh`, `$0.30/kWh` or `0.30 EUR/kWh`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct EnergyPrice {
    /// The price without its currency.
    pub per_kwh: f64,
    /// The currency before the number, such as `$`; empty if there is none.
    pub before: String,
    /// The currency after the number, such as ` EUR`; empty if there is none.
    pub after: String,
}

impl EnergyPrice {
    /// Formats the cost of an amount of energy, such as `0.42 EUR`.
    #[must_use]
    pub fn format_cost(&self, joules: f64) -> String {
        let cost = joules / KWH_JOULES * self.per_kwh;
        let number = match cost {
            0.0 => "0.00".to_owned(),
            tiny if tiny < 0.000_1 => "<0.0001".to_owned(),
            small if small < 0.001 => format!("{small:.4}"),
            small if small < 0.1 => format!("{small:.3}"),
            cost => format!("{cost:.2}"),
        };
        if self.before.is_empty() && self.after.is_empty() {
            format!("cost {number}")
        } else {
            format!("{}{number}{}", self.before, self.after)
        }
    }
}

impl FromStr for EnergyPrice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let amount = strip_unit(text.trim())?;
            let is_digit = |letter: char| letter.is_ascii_digit() || letter == '.';
            let begin = amount.find(is_digit)?;
            let (before, rest) = amount.split_at(begin);
            let end = rest.find(|letter| !is_digit(letter)).unwrap_or(rest.len());
            let (number, after) = rest.split_at(end);
            let per_kwh: f64 = number.parse().ok()?;
            let is_one = before.trim().is_empty() || after.trim().is_empty();
            let is_price = per_kwh.is_finite() && is_one;
            (is_price && is_currency(before) && is_currency(after)).then(|| Self {
                per_kwh,
                before: before.to_owned(),
                after: after.to_owned(),
            })
        };
        parse().ok_or_else(|| {
            "expected an amount per kilowatt hour, such as 0.30/kWh, $0.30/kWh or '0.30 EUR/kWh'"
                .to_owned()
        })
    }
}

/// Returns the text before the unit, or `None` if the text does not end with the unit.
fn strip_unit(text: &str) -> Option<&str> {
    let begin = text.len().checked_sub(UNIT.len())?;
    let amount = text.get(..begin)?.trim_end().strip_suffix('/')?;
    text[begin..]
        .eq_ignore_ascii_case(UNIT)
        .then(|| amount.trim_end())
}

/// Returns `true` if the text can be the name or the sign of a currency.
fn is_currency(text: &str) -> bool {
    text.chars().count() <= MAX_CURRENCY_CHARS
        && escape_untrusted(text) == text
        && !text.contains(|letter: char| letter.is_ascii_digit() || "/()<>-+.,".contains(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energy_cost_uses_currency_of_price() {
        for (text, cost) in [
            ("0.30/kWh", "cost 0.42"),
            ("$0.30/kWh", "$0.42"),
            ("0.30 EUR/kWh", "0.42 EUR"),
            ("30ct/kWh", "42.00ct"),
            ("$0/kWh", "$0.00"),
        ] {
            let price: EnergyPrice = text.parse().unwrap();
            assert_eq!(price.format_cost(1.4 * KWH_JOULES), cost);
        }
        let price: EnergyPrice = "$0.30/kWh".parse().unwrap();
        assert_eq!(price.format_cost(6_100.0), "$0.0005");
        for text in [
            "",
            "0.30",
            "0.30/MWh",
            "-1/kWh",
            "x/kWh",
            "$1$/kWh",
            "1.2.3/kWh",
        ] {
            assert!(text.parse::<EnergyPrice>().is_err(), "{text}");
        }
    }
}
