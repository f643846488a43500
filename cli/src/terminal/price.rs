//! The price of energy, which adds costs to amounts of energy.

use std::{str::FromStr, sync::OnceLock};

use gpumon_probe::units::three_digits_of;

/// The longest name of a currency.
const LONGEST_CURRENCY: usize = 8;
const KWH_JOULES: f64 = 3.6e6;

/// The unit that a price ends with.
const PER_KWH: &str = "/kWh";

/// The price of a kilowatt hour, such as `0.30/kWh`, `$0.30/kWh` or `0.30 EUR/kWh`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EnergyPrice {
    per_kwh: f64,
    /// The currency as it was given, before and after the number.
    currency: (String, String),
}

static PRICE: OnceLock<EnergyPrice> = OnceLock::new();

impl EnergyPrice {
    /// Adds costs to all amounts of energy that this process prints.
    pub(crate) fn show_costs(self) {
        let _ = PRICE.set(self);
    }

    /// Formats the cost of an amount of energy: `0.42 EUR`.
    fn format_cost(&self, joules: f64) -> String {
        let cost = joules / KWH_JOULES * self.per_kwh;
        let number = if cost >= 0.995 || cost == 0.0 {
            format!("{cost:.2}")
        } else {
            three_digits_of(cost).to_string()
        };
        match &self.currency {
            (before, after) if before.is_empty() && after.is_empty() => format!("cost {number}"),
            (before, after) => format!("{before}{number}{after}"),
        }
    }
}

impl FromStr for EnergyPrice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let amount = text.trim().strip_suffix(PER_KWH)?;
            let is_digit = |letter: char| letter.is_ascii_digit() || letter == '.';
            let begin = amount.find(is_digit)?;
            let (before, rest) = amount.split_at(begin);
            let end = rest.find(|letter| !is_digit(letter)).unwrap_or(rest.len());
            let (number, after) = rest.split_at(end);
            let is_currency = |text: &str| {
                text.chars().count() <= LONGEST_CURRENCY
                    && !text.contains(|letter: char| {
                        letter.is_control() || letter.is_ascii_digit() || "-+.,".contains(letter)
                    })
            };
            let is_one = before.trim().is_empty() || after.trim().is_empty();
            (is_one && is_currency(before) && is_currency(after)).then_some(Self {
                per_kwh: number.parse().ok()?,
                currency: (before.to_owned(), after.trim_end().to_owned()),
            })
        };
        parse().ok_or_else(|| {
            "not a price of energy: give one per kilowatt hour, such as 0.30/kWh, $0.30/kWh or \
             '0.30 EUR/kWh'"
                .to_owned()
        })
    }
}

/// Adds the cost to a formatted amount of energy if the price is known: `1.39 kWh (0.42 EUR)`.
pub(crate) fn with_cost(amount: String, joules: f64) -> String {
    match PRICE.get() {
        Some(price) => format!("{amount} ({})", price.format_cost(joules)),
        None => amount,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn price_with_any_currency_gives_cost() {
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
        assert_eq!(price.format_cost(6_100.0), "$0.000508");
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
