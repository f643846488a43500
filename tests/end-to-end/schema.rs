//! `gpumon schema` describes each key. `tests/python/test_schema.py` compares it with the output.

use serde_json::Value;

use crate::support::gpumon_command;

#[test]
fn schema_describes_keys_with_units() {
    let schema: Value =
        serde_json::from_slice(&gpumon_command(&["schema"]).output().unwrap().stdout).unwrap();
    let power = &schema["$defs"]["Power"]["properties"]["limit_watts"];
    assert_eq!(power["description"], "The power limit in force.");
    assert!(
        power["$comment"]
            .as_str()
            .unwrap()
            .contains("nvmlDeviceGetEnforcedPowerLimit"),
        "{power}"
    );
    assert_eq!(
        gpumon_command(&["schema", "everything"])
            .output()
            .unwrap()
            .status
            .code(),
        Some(2)
    );
}
