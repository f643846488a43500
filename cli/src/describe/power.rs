//! Formats amounts of power in watts.

/// Formats a power draw, such as `692/700 W`. The limit is left out if it is unknown.
pub(crate) fn format_power_draw(watts: f64, limit: Option<f64>) -> String {
    let limit = limit.map_or_else(String::new, |limit| format!("/{limit:.0}"));
    format!("{watts:.0}{limit} W")
}
