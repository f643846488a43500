//! What fuzzing feeds with scenarios.

use crate::scenario::Scenario;

/// Reads a scenario, and what it says of its devices.
pub fn scenario(text: &str) {
    let Ok(scenario) = toml::from_str::<Scenario>(text) else {
        return;
    };
    for device in 0..scenario.devices.min(8) {
        scenario.uuid_text(device);
    }
}
