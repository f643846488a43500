use std::time::Instant;

use super::*;
use crate::model::ThrottleReason;

const HOUR_S: u64 = 3_600;

fn make_simple_world(gpus: u32) -> World {
    World::new(Scenario::with_gpus(gpus, 42))
}

fn parse_world(toml: &str) -> World {
    World::new(Scenario::from_toml(toml, "test.toml").unwrap())
}

/// Simulates a GPU with the given profile for slightly more than an hour, and returns its state at
/// every second.
fn simulate_hour(profile: &str) -> Vec<GpuState> {
    let world = parse_world(&format!(
        "seed = 3\n[[gpu]]\nindex = 0\nprofile = \"{profile}\""
    ));
    (0..HOUR_S + 100)
        .map(|second| world.state(0, second * 1000))
        .collect()
}

#[test]
fn same_seed_gives_same_simulated_gpus() {
    let (one, two, other) = (
        make_simple_world(8),
        make_simple_world(8),
        World::new(Scenario::with_gpus(8, 43)),
    );
    for index in 0..8 {
        assert_eq!(one.gpu_identity(index), two.gpu_identity(index));
        assert_eq!(one.state(index, 123_456), two.state(index, 123_456));
        assert_ne!(one.gpu_identity(index).uuid, other.gpu_identity(index).uuid);
    }
    assert_ne!(one.state(0, 123_456), other.state(0, 123_456));
}

#[test]
fn simulated_values_do_not_depend_on_gpu_count() {
    assert_eq!(
        make_simple_world(2).gpu_identity(0),
        make_simple_world(64).gpu_identity(0)
    );
    let (few, many) = (make_simple_world(3), make_simple_world(64));
    assert_eq!(few.state(2, 5_000), many.state(2, 5_000));
}

#[test]
fn uuids_and_bus_ids_are_valid_and_unique() {
    let world = make_simple_world(64);
    let mut seen = std::collections::BTreeSet::new();
    for identity in (0..64).map(|index| world.gpu_identity(index)) {
        let groups: Vec<usize> = identity.uuid.split('-').map(str::len).collect();
        assert_eq!(groups, [3, 8, 4, 4, 4, 12], "{}", identity.uuid);
        assert!(
            identity.uuid[4..]
                .chars()
                .all(|c| c == '-' || c.is_ascii_hexdigit())
        );
        assert_eq!(identity.pci_bus_id.len(), "00000000:10:00.0".len());
        assert!(
            seen.insert(&identity.uuid)
                && seen.insert(&identity.pci_bus_id)
                && seen.insert(&identity.serial)
        );
    }
}

#[test]
fn all_simulated_values_are_plausible() {
    let world = make_simple_world(8);
    for (index, second) in
        (0..8).flat_map(|index| (0..HOUR_S).step_by(7).map(move |second| (index, second)))
    {
        let state = world.state(index, second * 1000);
        let at = format!("GPU {index} at {second} s: {state:?}");
        assert!(
            state.gpu_percent <= 100 && state.memory_percent <= state.gpu_percent,
            "{at}"
        );
        let sum = state.memory_used_bytes + state.memory_reserved_bytes + state.memory_free_bytes;
        assert_eq!(sum, state.memory_total_bytes, "{at}");
        let held: u64 = state
            .processes
            .iter()
            .filter_map(|process| process.memory_bytes)
            .sum();
        assert!(held <= state.memory_used_bytes, "{at}");
        assert!((60.0..=705.0).contains(&state.power_watts), "{at}");
        assert!((30.0..66.0).contains(&state.temperature_celsius), "{at}");
        assert!(
            (30.0..52.0).contains(&state.memory_temperature_celsius),
            "{at}"
        );
        assert!(
            (345..=1_980).contains(&state.sm_mhz) && state.sm_mhz.is_multiple_of(15),
            "{at}"
        );
        assert!(
            state
                .processes
                .windows(2)
                .all(|pair| pair[0].pid < pair[1].pid),
            "{at}"
        );
        assert!(
            state
                .processes
                .iter()
                .all(|process| process.started_s <= second as f64),
            "{at}"
        );
    }
}

#[test]
fn temperature_moves_slowly() {
    for profile in ["training", "inference", "leak"] {
        for pair in simulate_hour(profile).windows(2) {
            let step = (pair[1].temperature_celsius - pair[0].temperature_celsius).abs();
            assert!(step < 2.0, "{profile}: {step} C in a second");
        }
    }
}

#[test]
fn training_is_mostly_busy_and_power_capped() {
    let hour = simulate_hour("training");
    let busy = hour.iter().filter(|state| state.gpu_percent >= 95).count();
    let capped = hour
        .iter()
        .filter(|state| state.throttle_reasons == [ThrottleReason::SwPowerCap])
        .count();
    assert!(
        busy * 10 > hour.len() * 7,
        "busy in {busy} of {} s",
        hour.len()
    );
    assert!(capped * 10 > hour.len() * 5, "capped in {capped} s");
    assert!(
        hour.iter().any(|state| state.gpu_percent < 10),
        "it never checkpoints"
    );
    assert!(
        hour.iter()
            .any(|state| (15..60).contains(&state.gpu_percent)),
        "its data loader is always ahead"
    );
    let capped = hour
        .iter()
        .find(|state| state.throttle_reasons == [ThrottleReason::SwPowerCap])
        .unwrap();
    assert!(
        capped.sm_mhz < 1_900 && capped.power_watts > 500.0,
        "{capped:?}"
    );
}

#[test]
fn leak_grows_until_process_restarts() {
    let hour = simulate_hour("leak");
    let used: Vec<u64> = hour.iter().map(|state| state.memory_used_bytes).collect();
    let falls = used.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert!(
        (10..=14).contains(&falls),
        "it fell {falls} times in an hour"
    );
    let usable = hour[0].memory_total_bytes - hour[0].memory_reserved_bytes;
    assert!(used.iter().max().unwrap() * 100 > usable * 98);
    let pids: std::collections::BTreeSet<u32> = hour
        .iter()
        .flat_map(|s| &s.processes)
        .map(|p| p.pid)
        .collect();
    assert!(pids.len() >= 10, "{pids:?}");
    assert!(
        hour.iter()
            .any(|state| state.processes.is_empty() && state.sm_mhz == 345),
        "it never dies"
    );
}

#[test]
fn inference_has_bursts_and_constant_memory() {
    let hour = simulate_hour("inference");
    let (quiet, busy): (Vec<_>, Vec<_>) = hour.iter().partition(|state| state.gpu_percent == 0);
    assert!(
        quiet.len() > 500 && busy.len() > 500,
        "{} quiet, {} busy",
        quiet.len(),
        busy.len()
    );
    assert!(
        hour.iter()
            .all(|state| state.memory_used_bytes == hour[0].memory_used_bytes)
    );
}

#[test]
fn held_profile_uses_memory_unlike_idle_profile() {
    for (held, idle) in simulate_hour("held").iter().zip(simulate_hour("idle")) {
        assert_eq!((held.gpu_percent, idle.gpu_percent), (0, 0));
        assert_eq!((held.processes.len(), idle.processes.len()), (1, 0));
        assert!(held.memory_used_bytes > 20 << 30);
        assert_eq!(idle.memory_used_bytes, 0);
        assert_eq!(idle.throttle_reasons, [ThrottleReason::GpuIdle]);
        assert!(held.power_watts > idle.power_watts && held.sm_mhz > idle.sm_mhz);
    }
}

#[test]
fn scenario_values_change_over_time() {
    let world = parse_world(
        "[[gpu]]\nindex = 0\nname = \"NVIDIA L4\"\nmemory = \"24 GiB\"\npower_limit_watts = \
         72\nutilization_percent = [[0, 20], [10, 80]]\nmemory_used = [[0, \"2 GiB\"], [10, \"12 \
         GiB\"]]\npower_watts = [[0, 30], [10, 72]]\ntemperature_celsius = 81",
    );
    assert_eq!(world.gpu_identity(0).name, "NVIDIA L4");
    let state = world.state(0, 5_000);
    assert_eq!(
        (
            state.gpu_percent,
            state.memory_used_bytes,
            state.memory_total_bytes
        ),
        (50, 7 << 30, 24 << 30)
    );
    assert!((state.temperature_celsius - 81.0).abs() < 1e-9);
    assert!(
        (state.power_instant_watts - 51.0).abs() < 1e-9 && (state.power_watts - 49.0).abs() < 2.0
    );
    assert_eq!(
        world.state(0, 20_000).throttle_reasons,
        [ThrottleReason::SwPowerCap]
    );
}

#[test]
fn scenario_processes_replace_profile_processes_and_set_load() {
    let world = parse_world(
        "[[process]]\ngpu = 0\npid = 90\nmemory = \"3 GiB\"\nsm_percent = 40\n[[process]]\ngpu = \
         0\npid = 7\nmemory = \"1 GiB\"\nsm_percent = [[0, 10]]\nkind = \"graphics\"\nto_s = 30\n",
    );
    let early = world.state(0, 29_999);
    assert_eq!(
        early
            .processes
            .iter()
            .map(|process| process.pid)
            .collect::<Vec<_>>(),
        [90, 7]
    );
    assert_eq!((early.gpu_percent, early.memory_used_bytes), (50, 4 << 30));
    let late = world.state(0, 30_000);
    assert_eq!(
        (
            late.gpu_percent,
            late.memory_used_bytes,
            late.processes.len()
        ),
        (40, 3 << 30, 1)
    );
}

#[test]
fn simulated_state_is_computed_in_microseconds() {
    let world = make_simple_world(8);
    let began = Instant::now();
    for n in 0..1_000 {
        std::hint::black_box(world.state(n % 8, u64::from(n) * 997));
    }
    // The limit is ten times the usual duration in a debug build. The test therefore fails only if
    // the code becomes slower by an order of magnitude.
    assert!(
        began.elapsed().as_millis() < 2_000,
        "{:?} for 1,000 states",
        began.elapsed()
    );
}

#[test]
fn simulated_activity_and_throttling_follow_scenario() {
    let world = parse_world(
        "[[gpu]]\nindex = 0\nutilization_percent = 100\nsm_percent = [[0, 90], [10, \
         10]]\ntensor_percent = 2\nthrottle_reasons = [[0, [\"sync_boost\"]], [5, \
         []]]\ntemperature_celsius = 90",
    );
    let (early, late) = (world.state(0, 0), world.state(0, 10_000));
    assert_eq!(
        (early.counters.sm_percent, late.counters.sm_percent),
        (90.0, 10.0)
    );
    assert!((late.counters.tensor_percent - 2.0).abs() < 1e-9 && late.gpu_percent == 100);
    assert_eq!(
        (early.throttle_reasons, late.throttle_reasons),
        (vec![ThrottleReason::SyncBoost], vec![])
    );
    assert!((early.margin_celsius + 3.0).abs() < 1e-9);
}

#[test]
fn process_is_replaced_after_its_lifetime() {
    let world =
        parse_world("[[process]]\ngpu = 0\npid = 100\ncount = 2\nfrom_s = 1\nlifetime_s = 0.5");
    let processes = |elapsed_ms| {
        let processes = world.processes(0, elapsed_ms);
        processes
            .iter()
            .map(|process| (process.pid, process.started_s))
            .collect::<Vec<_>>()
    };
    assert_eq!(processes(900), []);
    assert_eq!(processes(1_400), [(100, 1.0), (101, 1.0)]);
    assert_eq!(processes(1_600), [(102, 1.5), (103, 1.5)]);
    assert_eq!(processes(11_000), [(140, 11.0), (141, 11.0)]);
}

#[test]
fn count_in_process_table_creates_many_processes() {
    let world = parse_world(
        "[[process]]\ngpu = 0\npid = 100000\ncount = 2000\nmemory = \"1 MiB\"\nsm_percent = 0.04",
    );
    let state = world.state(0, 0);
    assert_eq!(
        (state.processes.len(), state.processes[1_999].pid),
        (2_000, 101_999)
    );
    assert_eq!(
        (state.memory_used_bytes, state.gpu_percent),
        (2_000 << 20, 80)
    );
}
