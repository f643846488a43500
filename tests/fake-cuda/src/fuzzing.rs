//! Entry points for fuzzing.

use crate::scenario::Scenario;

/// Parses a scenario and reads the devices in it.
pub fn parse_scenario(text: &str) {
    let Ok(scenario) = toml::from_str::<Scenario>(text) else {
        return;
    };
    for device in 0..scenario.devices.min(8) {
        scenario.uuid_text(device);
    }
}
