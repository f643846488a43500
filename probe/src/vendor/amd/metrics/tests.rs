use std::{fs, path::PathBuf};

use super::{Field::*, *};

/// Reads a recorded table, if it exists. The recordings are not part of the repository.
fn read_recorded(name: &str) -> Option<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/reference/dumps");
    fs::read(folder.join("gpu_metrics").join(name)).ok()
}

/// The kernel's names of the fields in the recorded tables.
const NAMES: [(Field, &str); 21] = [
    (EdgeTemperature, "temperature_edge"),
    (HotspotTemperature, "temperature_hotspot"),
    (MemoryTemperature, "temperature_mem"),
    (HbmTemperature, "temperature_hbm"),
    (GfxTemperature, "temperature_gfx"),
    (GfxActivity, "average_gfx_activity"),
    (MemoryActivity, "average_umc_activity"),
    (MediaActivity, "average_mm_activity"),
    (SocketPower, "average_socket_power"),
    (Energy, "energy_accumulator"),
    (AverageGfxClock, "average_gfxclk_frequency"),
    (AverageSocClock, "average_socclk_frequency"),
    (AverageMemoryClock, "average_uclk_frequency"),
    (AverageFabricClock, "average_fclk_frequency"),
    (GfxClock, "current_gfxclk"),
    (SocClock, "current_socclk"),
    (MemoryClock, "current_uclk"),
    (FabricClock, "current_fclk"),
    (ThrottleStatus, "throttle_status"),
    (IndependentThrottleStatus, "indep_throttle_status"),
    (PcieWidth, "pcie_link_width"),
];

#[test]
fn recorded_tables_decode_to_expected_values() {
    for name in ["rx6900xt", "rx7800xt", "phoenix"] {
        let (Some(bytes), Some(decoded)) = (
            read_recorded(&format!("{name}.bin")),
            read_recorded(&format!("{name}.decoded.json")),
        ) else {
            return;
        };
        let metrics = Metrics::decode(&bytes).unwrap();
        let decoded: serde_json::Value = serde_json::from_slice(&decoded).unwrap();
        let mut compared = 0;
        for (field, key) in NAMES {
            let expected = decoded.get(key).map(|value| value.get(0).unwrap_or(value));
            let expected = expected.and_then(serde_json::Value::as_u64);
            assert_eq!(metrics.get_raw(field), expected, "{name} {key}");
            compared += u32::from(expected.is_some());
        }
        assert!(compared >= 9, "{name}: {compared}");
    }
}

/// Returns a table in which every byte contains its own offset, so that no two fields have the same
/// value.
fn make_table(format: u8, content: u8, size: usize) -> Vec<u8> {
    let mut bytes: Vec<_> = (0..size).map(|place| (place % 251) as u8).collect();
    bytes[..2].copy_from_slice(&(size as u16).to_le_bytes());
    bytes[2..4].copy_from_slice(&[format, content]);
    bytes
}

#[test]
fn fields_are_within_their_table() {
    for layout in &LAYOUTS {
        let Layout {
            format,
            content,
            size,
            ..
        } = *layout;
        let metrics = Metrics::decode(&make_table(format, content, size)).unwrap();
        let rows = layout.rows.iter().copied().flatten();
        for row in rows.clone() {
            assert_eq!(
                metrics.get_all(row.field).len(),
                row.count,
                "{format}.{content} {row:?}"
            );
            assert_eq!(row.offset % row.width, 0, "{row:?}: C aligns it");
        }
        let mut ends: Vec<_> = rows
            .map(|row| (row.offset, row.offset + row.width * row.count))
            .collect();
        ends.sort_unstable();
        assert!(
            ends.windows(2).all(|pair| pair[0].1 <= pair[1].0),
            "{format}.{content}"
        );
        if let Some(block) = &layout.partitions {
            assert!(block.offset + MAX_PARTITIONS * block.stride <= size);
            assert!(
                block
                    .rows
                    .iter()
                    .all(|row| row.offset + row.width * row.count <= block.stride)
            );
            assert_eq!(metrics.partitions.len(), MAX_PARTITIONS);
        }
    }
}

#[test]
fn unknown_and_incomplete_tables_are_refused() {
    let whole = make_table(1, 3, 120);
    assert_eq!(Metrics::decode(&[]), Err(MetricsError::Empty));
    let truncated = MetricsError::Truncated {
        length: 119,
        size: 120,
    };
    assert_eq!(Metrics::decode(&whole[..119]), Err(truncated));
    assert!(matches!(
        Metrics::decode(&whole[..3]),
        Err(MetricsError::Truncated { .. })
    ));
    for (format, content, size) in [(1, 3, 112), (1, 6, 1656), (1, 8, 3360), (4, 0, 120)] {
        let error = Metrics::decode(&make_table(format, content, size)).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(&format!("v{format}.{content} with {size} bytes")),
            "{text}"
        );
    }
    let padded = [whole, vec![0; 4096 - 120]].concat();
    assert!(Metrics::decode(&padded).is_ok(), "a file of a whole page");
}

#[test]
fn fields_with_all_bits_set_are_absent() {
    let mut bytes = make_table(1, 3, 120);
    bytes[4..].fill(0xff);
    bytes[68..72].copy_from_slice(&[0; 4]);
    let metrics = Metrics::decode(&bytes).unwrap();
    assert_eq!(metrics.get(EdgeTemperature), None);
    assert_eq!(metrics.get(ThrottleStatus), Some(0.0));
    assert_eq!(metrics.get_all(HbmTemperature), []);
}

fn make_attribute(number: u64, kind: u64, values: &[u64], width: usize) -> Vec<u8> {
    let encoding = values.len() as u64 | number << 10 | kind << 20;
    let values = values
        .iter()
        .flat_map(|value| value.to_le_bytes()[..width].to_vec());
    encoding.to_le_bytes().into_iter().chain(values).collect()
}

fn make_list(count: u32, attributes: &[Vec<u8>]) -> Vec<u8> {
    let body = [count.to_le_bytes().to_vec(), attributes.concat()].concat();
    let size = (4 + body.len()) as u16;
    [size.to_le_bytes().to_vec(), vec![1, 9], body].concat()
}

#[test]
fn metric_attributes_are_decoded_with_their_type() {
    let attributes = [
        make_attribute(3, 2, &[250], 2),
        make_attribute(77, 4, &[1, 2], 4),
        make_attribute(20, 6, &[1 << 40], 8),
        make_attribute(33, 2, &[2100, 0xffff], 2),
        make_attribute(40, 4, &[30, 40], 4),
    ];
    let metrics = Metrics::decode(&make_list(5, &attributes)).unwrap();
    assert_eq!(metrics.get(SocketPower), Some(250.0));
    assert_eq!(metrics.get_raw(GfxActivitySum), Some(1 << 40));
    assert_eq!(metrics.get_all(GfxClock), [Some(2100.0), None]);
    assert_eq!(
        metrics.get_partition(0, DieActivity),
        [Some(30.0), Some(40.0)]
    );
    for broken in [
        make_list(6, &attributes),
        make_list(1, &[make_attribute(3, 9, &[1], 2)]),
        make_list(1, &[]),
    ] {
        assert_eq!(Metrics::decode(&broken), Err(MetricsError::Invalid));
    }
}

#[test]
fn reconstructed_tables_of_mi300x_have_published_values() {
    let Some(bytes) = read_recorded("mi300x-v1_9-load-a.reconstructed.bin") else {
        return;
    };
    let metrics = Metrics::decode(&bytes).unwrap();
    assert_eq!(
        metrics.version,
        Version {
            format: 1,
            content: 9
        }
    );
    assert!(metrics.get(SocketPower).is_some());
    let bytes = read_recorded("mi300x-v1_6-idle.reconstructed.bin").unwrap();
    assert_eq!(
        Metrics::decode(&bytes).unwrap().version,
        Version {
            format: 1,
            content: 6
        }
    );
}

#[test]
fn arbitrary_bytes_do_not_panic() {
    let mut state = 1_u64;
    for _ in 0..20_000 {
        let mut bytes: Vec<u8> = (0..200)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        bytes[..4].copy_from_slice(&[200, 0, 1, 9]);
        bytes[4..8].copy_from_slice(&3_u32.to_le_bytes());
        let _ = Metrics::decode(&bytes);
    }
}
