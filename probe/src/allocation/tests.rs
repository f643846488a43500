use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use super::*;
use crate::{
    derive::examples,
    model::{
        Absence, BatchJob, Container, ContainerRuntime, MigInstance, MigSample, Owner, Pod,
        Process, Reading,
    },
};

const GPU: &str = "GPU-0";

fn slurm_allocation(job_id: &str, user: Option<&str>) -> Allocation {
    Allocation::Slurm {
        job_id: job_id.to_owned(),
        user: user.map(str::to_owned),
    }
}

fn pod_allocation(name: &str, container: &str) -> Allocation {
    let [namespace, pod, container] = ["research", name, container].map(str::to_owned);
    Allocation::Kubernetes {
        namespace,
        pod,
        container,
    }
}

fn make_device(name: &str, to: Allocation) -> AllocatedDevice {
    AllocatedDevice {
        device: name.to_owned(),
        to,
    }
}

fn make_sample() -> GpuSample {
    GpuSample {
        uuid: Some(GPU.to_owned()),
        ..examples::make_sample(0)
    }
}

/// Returns the owners of `processes` on a GPU with the allocations `holders`, after missing job and
/// pod names have been filled in.
fn name_processes(holders: &[Allocation], processes: &[Process]) -> Vec<Owner> {
    let mut sample = make_sample();
    sample.allocated_to = holders.to_vec();
    let mut naming = ProcessNaming::new(&sample);
    for process in processes {
        process
            .owner
            .value()
            .into_iter()
            .for_each(|owner| naming.record_owner(process.mig, owner));
    }
    let named = processes.iter().cloned().map(|mut process| {
        naming.fill_job_or_pod(&mut process);
        process.owner.value().cloned().unwrap_or_default()
    });
    named.collect()
}

fn make_process(user: &str, owner: Owner) -> Process {
    Process {
        user: Reading::Now(user.to_owned()),
        owner: Reading::Now(owner),
        ..examples::make_process(7, 1)
    }
}

fn pod_owner(uid: &str, container: &str) -> Owner {
    let container = Container {
        runtime: ContainerRuntime::Containerd,
        id: container.to_owned(),
        name: None,
    };
    Owner {
        pod: Some(Pod {
            uid: uid.to_owned(),
            namespace: None,
            name: None,
        }),
        container: Some(container),
        ..Owner::default()
    }
}

fn job_owner(job_id: &str, step: Option<&str>) -> Owner {
    let slurm = BatchJob {
        job_id: job_id.to_owned(),
        step: step.map(str::to_owned),
        private: false,
    };
    Owner {
        slurm: Some(slurm),
        ..Owner::default()
    }
}

#[test]
fn unnamed_process_gets_job_of_gpu() {
    let job = |holders: &[Allocation], process: Process| {
        name_processes(holders, &[process])[0].slurm.clone()
    };
    let held = [slurm_allocation("88123", Some("ana"))];
    let ours = BatchJob {
        job_id: "88123".to_owned(),
        step: None,
        private: false,
    };
    assert_eq!(
        job(&held, make_process("ana", Owner::default())),
        Some(ours)
    );
    assert_eq!(
        job(&held, make_process("root", Owner::default())),
        None,
        "a monitor's"
    );
    assert_eq!(
        job(
            &[slurm_allocation("88123", None)],
            make_process("root", Owner::default())
        ),
        None,
        "whose job it is, is not known"
    );
    let unread = Owner {
        partial: true,
        ..Owner::default()
    };
    assert_eq!(
        job(&held, make_process("ana", unread)),
        None,
        "what its environment tells is not known yet"
    );
    assert_eq!(
        job(&held, make_process("ana", job_owner("5", None)))
            .unwrap()
            .job_id,
        "5",
        "it says itself of which it is"
    );
    let by_sluid = job(
        &held,
        make_process("chen", job_owner("sEKNKTV3WPV500", Some("0"))),
    )
    .unwrap();
    assert_eq!(
        (by_sluid.job_id.as_str(), by_sluid.step.as_deref()),
        ("88123", Some("0"))
    );
    let shared = [
        slurm_allocation("88123", Some("ana")),
        slurm_allocation("88124", Some("ana")),
    ];
    assert_eq!(
        job(&shared, make_process("ana", Owner::default())),
        None,
        "it can be of either"
    );
}

#[test]
fn pod_and_container_are_named_if_unambiguous() {
    let names = |holders: &[Allocation], owners: &[Owner]| {
        let processes: Vec<_> = owners
            .iter()
            .map(|owner| make_process("root", owner.clone()))
            .collect();
        let labels = name_processes(holders, &processes)
            .into_iter()
            .map(|owner| {
                let container = owner.container.and_then(|container| container.name);
                (owner.pod.unwrap().label(), container)
            });
        labels.collect::<Vec<_>>()
    };
    let (reported, trainer) = ("research/train-0".to_owned(), Some("trainer".to_owned()));
    let one = pod_allocation("train-0", "trainer");
    let (same, other) = (pod_owner("1-1", "aa"), pod_owner("2-2", "cc"));
    assert_eq!(
        names(std::slice::from_ref(&one), &[same.clone(), same.clone()]),
        vec![(reported.clone(), trainer.clone()); 2]
    );
    let two_containers = [one.clone(), pod_allocation("train-0", "loader")];
    assert_eq!(
        names(&two_containers, std::slice::from_ref(&same)),
        [(reported.clone(), None)]
    );
    assert_eq!(
        names(
            std::slice::from_ref(&one),
            &[same.clone(), pod_owner("1-1", "bb")]
        ),
        vec![(reported, None); 2]
    );
    let unnamed = [("1-1".to_owned(), None), ("2-2".to_owned(), None)];
    assert_eq!(
        names(std::slice::from_ref(&one), &[same.clone(), other]),
        unnamed,
        "a monitor's pod is there, too"
    );
    assert_eq!(
        names(
            &[one, pod_allocation("train-1", "trainer")],
            std::slice::from_ref(&same)
        ),
        unnamed[..1],
        "time-slicing"
    );
    assert_eq!(names(&[slurm_allocation("1", None)], &[same]), unnamed[..1]);
}

#[test]
fn mig_process_gets_job_of_its_device() {
    let instance = MigInstance {
        gpu_instance: 1,
        compute_instance: 0,
    };
    let mut sample = make_sample();
    let mig = MigSample {
        uuid: "MIG-1".to_owned(),
        instance,
        memory: sample.memory.clone(),
        activity: Reading::Absent(Absence::NotSupported),
        allocated_to: Vec::new(),
    };
    sample.mig_devices = Reading::Now(vec![mig]);
    let allocations = Allocations::default();
    allocations.set_slurm(vec![make_device(
        "MIG-1",
        slurm_allocation("7", Some("ana")),
    )]);
    allocations.fill_gpu_allocations(&mut sample, None);
    assert_eq!(sample.allocated_to, []);
    assert_eq!(
        sample.mig_devices.value().unwrap()[0].allocated_to,
        [slurm_allocation("7", Some("ana"))]
    );
    let naming = ProcessNaming::new(&sample);
    let mut inside = Process {
        mig: Some(instance),
        ..make_process("ana", Owner::default())
    };
    let mut neighbor = make_process("ana", Owner::default());
    naming.fill_job_or_pod(&mut inside);
    naming.fill_job_or_pod(&mut neighbor);
    assert_eq!(
        inside.owner.value().unwrap().slurm.as_ref().unwrap().job_id,
        "7"
    );
    assert_eq!(neighbor.owner.value().unwrap().slurm, None);
}

#[test]
fn gpu_is_found_by_uuid_or_minor_number() {
    let allocations = Allocations::default();
    let of = |minor| {
        let mut sample = make_sample();
        allocations.fill_gpu_allocations(&mut sample, minor);
        sample.allocated_to
    };
    allocations.set_slurm(vec![make_device(GPU, slurm_allocation("7", None))]);
    allocations.set_kubernetes(vec![
        make_device("gpu-3", pod_allocation("train-0", "trainer")),
        make_device("gpu-3", pod_allocation("train-0", "trainer")),
    ]);
    assert_eq!(
        of(Some(3)),
        [
            slurm_allocation("7", None),
            pod_allocation("train-0", "trainer")
        ]
    );
    assert_eq!(of(None), [slurm_allocation("7", None)]);
    let hostile = |number: usize| {
        make_device(
            GPU,
            pod_allocation(&format!("{number}\u{1b}[2J\n{}", "x".repeat(5000)), "\0"),
        )
    };
    allocations.set_kubernetes((0..5000).map(hostile).collect());
    let reported = serde_json::to_string(&of(None)).unwrap();
    assert_eq!(of(None).len(), 1 + MAX_JOBS_PER_DEVICE);
    assert!(
        reported.len() < 20_000 && !reported.contains("\\u001b") && !reported.contains("\\n"),
        "{reported}"
    );
    allocations.set_kubernetes(
        (0..5000)
            .map(|number| make_device(&number.to_string(), pod_allocation("a", "b")))
            .collect(),
    );
    assert_eq!(allocations.lock().kubernetes.len(), MAX_DEVICES);
    allocations.set_kubernetes(Vec::new());
    assert_eq!(of(Some(3)), [slurm_allocation("7", None)]);
}

fn write_file(folder: &Path, name: &str, text: &str) {
    fs::write(folder.join(name), text).unwrap();
    fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o644)).unwrap();
}

#[test]
fn only_trusted_regular_files_are_read() {
    let folder = std::env::temp_dir().join(format!("gpumon-gpustat-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    for (name, text) in [
        ("GPU-b", "88123 1000\n"),
        ("GPU-a", "88124"),
        ("MIG-c", "  88125   x"),
        ("0", "88123 1000"),
        ("GPU-d", ""),
        ("GPU-e", "88123\u{1b}[2J 5"),
        ("GPU-long", &"9".repeat(1 << 20)),
        ("GPU-all", "88126 0"),
    ] {
        write_file(&folder, name, text);
    }
    fs::set_permissions(folder.join("GPU-all"), fs::Permissions::from_mode(0o666)).unwrap();
    std::os::unix::fs::symlink(folder.join("GPU-b"), folder.join("GPU-link")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        folder.join("GPU-pipe"),
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    fs::create_dir_all(folder.join("GPU-folder")).unwrap();
    let job = |device: &str, job_id: &str, uid| DeviceJob {
        device: device.to_owned(),
        job_id: job_id.to_owned(),
        uid,
    };
    let own = rustix::process::geteuid().as_raw();
    let read = super::read_slurm_jobs(&folder, own);
    let long = job("GPU-long", &"9".repeat(64), None);
    let known = [
        job("GPU-a", "88124", None),
        job("GPU-b", "88123", Some(1000)),
        long,
        job("MIG-c", "88125", None),
    ];
    assert_eq!(read, known);
    if own == 0 {
        std::os::unix::fs::chown(folder.join("GPU-b"), Some(65_533), None).unwrap();
        assert_eq!(
            super::read_slurm_jobs(&folder, own).len(),
            known.len() - 1,
            "what a stranger wrote"
        );
    }
    let allocations = std::sync::Arc::new(Allocations::default());
    allocations.start_following_slurm_files(folder.clone());
    allocations.wait_for_first_slurm_reading(Duration::from_mins(1));
    assert!(allocations.lock().slurm.contains_key("GPU-a"));
    let none = std::sync::Arc::new(Allocations::default());
    none.start_following_slurm_files(folder.join("none"));
    none.wait_for_first_slurm_reading(Duration::from_mins(1));
    assert!(!none.lock().is_reading && none.lock().slurm.is_empty());
    fs::remove_dir_all(folder).unwrap();
}
