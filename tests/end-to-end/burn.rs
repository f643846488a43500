//! `gpumon burn` over a driver whose devices are the CPU: it ends on time, and nothing that is wrong escapes it.

use std::{process::Stdio, time::Instant};

use serde_json::Value;

use crate::support::{FakeCuda, eventually, gpumon, lines_of, signal, stderr, stdout};

/// So little memory that the matrices are small, and what that takes.
const SMALL: &str = "memory_mib = 600";
const MEM: [&str; 4] = ["--mem", "0.5%", "--time", "1s"];

fn burn(scenario: &str, arguments: &[&str]) -> (FakeCuda, Option<i32>, Vec<Value>, String) {
    let cuda = FakeCuda::new(&format!("{SMALL}\n{scenario}"));
    let (code, lines, said) = lines_of(cuda.gpumon(&[&["burn", "--json"], &MEM[..], arguments].concat()));
    (cuda, code, lines, said)
}

#[test]
fn all_devices_burn_at_once_and_end_on_time() {
    let begun = Instant::now();
    let (cuda, code, lines, said) = burn("devices = 2\nkernel_ms = 5", &["--device", "all"]);
    assert_eq!((code, said.as_str(), lines.len()), (Some(0), "", 2), "{lines:?}");
    assert!(begun.elapsed().as_secs() < 15, "{:?}", begun.elapsed());
    for line in &lines {
        let verify = &line["verify"];
        assert_eq!(
            (&verify["ok"], &verify["wrong"], &line["stopped"]),
            (&true.into(), &0.into(), &"time_limit".into())
        );
        assert!(verify["checked"].as_u64().unwrap() > 2 * 256 * 256, "{line}");
        assert!(line["rate"]["operations_per_second"].as_f64().unwrap() > 1e6, "{line}");
        let took_ms = line["environment"]["to_ms"].as_u64().unwrap() - line["environment"]["from_ms"].as_u64().unwrap();
        assert!((1000..8000).contains(&took_ms), "{line}");
    }
    let mut indices: Vec<_> = lines.iter().map(|line| line["device"]["index"].as_u64().unwrap()).collect();
    indices.sort_unstable();
    assert_eq!(indices, [0, 1]);
    let book = cuda.book();
    assert_eq!((&book["held_bytes"], &book["contexts"]), (&0.into(), &0.into()), "{book}");
}

#[test]
fn a_flipped_bit_makes_it_end_with_1() {
    for after in [0, 1, 4] {
        let fault = format!("[[fault]]\nkind = \"flip\"\nafter_kernels = {after}\nkernel = \"burn_product\"");
        let (_, code, lines, said) = burn(&fault, &[]);
        let verify = &lines[0]["verify"];
        assert_eq!((code, &verify["ok"]), (Some(1), &false.into()), "{after}: {lines:?} {said}");
        if after > 0 {
            assert_eq!(verify["wrong"], 1, "{after}: {verify}");
        }
    }
}

#[test]
fn a_product_that_was_not_written_is_an_error() {
    // The second time that a piece is filled, the right result of the first time must not be there any more.
    for after in [1, 2] {
        let fault = format!("[[fault]]\nkind = \"skip\"\nafter_kernels = {after}\nkernel = \"burn_product\"");
        let (_, code, lines, _) = burn(&fault, &[]);
        let wrong = lines[0]["verify"]["wrong"].as_u64().unwrap();
        assert_eq!((code, wrong % (256 * 256)), (Some(1), 0), "{lines:?}");
        assert!(wrong > 0, "{lines:?}");
    }
}

#[test]
fn who_interrupts_gets_what_there_is_and_the_memory_back() {
    let cuda = FakeCuda::new(&format!("{SMALL}\nkernel_ms = 20"));
    let mut command = cuda.gpumon(&["burn", "--json", "--mem", "0.5%", "--time", "10m"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("products were compared", || cuda.book()["kernels"].as_u64() > Some(10));
    signal("-INT", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let line: Value = serde_json::from_str(stdout(&output).trim()).unwrap();
    assert_eq!((&line["partial"], &line["verify"]["ok"]), (&true.into(), &true.into()), "{line}");
    assert_eq!(cuda.book()["held_bytes"], 0);
}

#[test]
fn the_cpu_burns_where_it_is_asked_to() {
    let free = std::fs::read_to_string("/proc/meminfo").unwrap();
    let free = free.lines().find_map(|line| line.strip_prefix("MemAvailable:")).unwrap();
    let free: f64 = free.trim().trim_end_matches(" kB").parse().unwrap();
    let share = format!("{:.9}", 4096.0 / free);
    let (code, lines, said) =
        lines_of(gpumon(&["burn", "--backend", "cpu", "--time", "1s", "--mem", &share, "--json"]));
    assert_eq!(
        (code, &lines[0]["backend"], &lines[0]["verify"]["ok"]),
        (Some(0), &"cpu".into(), &true.into()),
        "{said}"
    );
    let table = gpumon(&["burn", "--backend", "cpu", "--time", "1s", "--mem", &share]).output().unwrap();
    let text = stdout(&table);
    assert!(text.contains("FLOP/s") && text.contains("computing") && text.contains("right"), "{text}");
}

#[test]
fn what_cannot_be_burnt_is_answered_with_what_can() {
    for (arguments, code, words) in [
        (&["--mem", "120%"][..], 2, "90%"),
        (&["--time", "5"], 2, "10m"),
        (&["--dtype", "int8"], 2, "give one of fp32"),
        (&["--device", "9"], 2, "there is only 0"),
        (&["--mem", "0.001%"], 5, "burn needs"),
    ] {
        let output = FakeCuda::new(SMALL).gpumon(&[&["burn"], arguments].concat()).output().unwrap();
        let said = stderr(&output);
        assert_eq!((output.status.code(), said.lines().count()), (Some(code), 1), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}
