//! Formats energy costs in this process's output if the price is known.

use std::sync::OnceLock;

use gpumon_probe::model::EnergyPrice;

static PRICE: OnceLock<EnergyPrice> = OnceLock::new();

/// Sets the energy price, which adds costs to all amounts of energy that this process prints.
pub(crate) fn set_energy_price(price: EnergyPrice) {
    let _ = PRICE.set(price);
}

/// Returns the energy price, if known.
pub(crate) fn energy_price() -> Option<&'static EnergyPrice> {
    PRICE.get()
}

/// Formats the cost of an amount of energy. Returns `None` if the price is unknown.
pub(crate) fn format_cost(joules: f64) -> Option<String> {
    energy_price().map(|price| price.format_cost(joules))
}

/// Appends the cost to a formatted amount of energy if the price is known, as in `1.39 kWh (0.42
/// EUR)`.
pub(crate) fn append_cost(amount: String, joules: f64) -> String {
    match format_cost(joules) {
        Some(cost) => format!("{amount} ({cost})"),
        None => amount,
    }
}
