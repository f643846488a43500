//! A program that writes the files of a simulated machine, which gpumon can show.

use std::{env, path::Path, process::ExitCode};

use fake_drm::{Tree, scenario};

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let find = |name: &str| scenario::SCENARIOS.iter().find(|own| own.name == name);
    let [name, folder] = &arguments[..] else {
        return print_problem("two arguments are needed");
    };
    let Some(scenario) = find(name) else {
        return print_problem(&format!("there is no scenario '{name}'"));
    };
    if Path::new(folder).exists() {
        return print_problem(&format!("{folder} already exists; choose a new folder"));
    }
    (scenario.build)(&Tree::new_in(Path::new(folder)));
    println!("GPUMON_SYSFS={folder}/sys GPUMON_PROCFS={folder}/proc gpumon --source auto");
    ExitCode::SUCCESS
}

fn print_problem(problem: &str) -> ExitCode {
    eprintln!("fake-drm: {problem}\nUsage: fake-drm SCENARIO NEW_FOLDER\nScenarios:");
    for scenario in &scenario::SCENARIOS {
        eprintln!("  {:<12} {}", scenario.name, scenario.description);
    }
    ExitCode::FAILURE
}
