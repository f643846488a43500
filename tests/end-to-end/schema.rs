//! `gpumon schema` describes each key. `tests/python/test_schema.py` compares it with the output.

use serde_json::Value;

use crate::support::gpumon;

#[test]
fn a_key_says_what_it_means_and_its_unit() {
    let schema: Value =
        serde_json::from_slice(&gpumon(&["schema"]).output().unwrap().stdout).unwrap();
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
        gpumon(&["schema", "everything"])
            .output()
            .unwrap()
            .status
            .code(),
        Some(2)
    );
}
