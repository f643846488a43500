//! `gpumon usage` and `GET /api/v1/usage`: who used how much since the server's start.

use std::process;

use serde_json::Value;

use crate::support::{Fake, Server, eventually, stderr, stdout};

#[test]
fn who_has_a_gpu_alone_used_what_its_counter_grew_by() {
    let mut sleepers = [(); 2].map(|()| process::Command::new("sleep").arg("600").spawn().unwrap());
    let [one, other] = [&sleepers[0], &sleepers[1]].map(std::process::Child::id);
    let fake = Fake::new(&format!(
        "[[gpu]]\nindex = 0\npower_watts = 300\n[[gpu]]\nindex = 1\npower_watts = 80\nprofile = \"idle\"\n\
         [[process]]\ngpu = 0\npid = {one}\nmemory = \"2 GiB\"\nsm_percent = 50\n\
         [[process]]\ngpu = 0\npid = {other}\nmemory = \"1 GiB\"\n"
    ));
    let none = fake.gpumon(&["usage"]).output().unwrap();
    assert_eq!(none.status.code(), Some(1));
    assert!(stderr(&none).contains("gpumon serve") && stderr(&none).contains("--control"), "{}", stderr(&none));

    let server = Server::over(&fake, &["--interval-ms", "200"]);
    let known = || server.get("/api/v1/usage").json();
    // The counter is read every five seconds.
    eventually("something is known of both GPUs", || {
        let usage = known();
        usage["owners"][0]["gpu_seconds"].as_f64() > Some(5.0) && usage["unheld"]["gpu_seconds"].as_f64() > Some(5.0)
    });
    let usage = known();
    let number = |of: &Value, key: &str| of[key].as_f64().unwrap();
    let owner = &usage["owners"][0];
    let user = process::Command::new("id").arg("-un").output().unwrap();
    assert_eq!(owner["user"], stdout(&user).trim());
    // Both programs are one owner's, unless a service or a container tells them apart, which it does not here.
    assert_eq!(usage["owners"].as_array().unwrap().len(), 1, "{usage}");
    let (seconds, joules) = (number(owner, "gpu_seconds"), &owner["joules"]);
    let watts = number(joules, "estimate") / seconds;
    assert!((291.0..=309.0).contains(&watts), "{usage}");
    assert_eq!((&joules["least"], &joules["most"]), (&joules["estimate"], &joules["estimate"]));
    assert!((0.45..0.55).contains(&(number(owner, "active_seconds") / seconds)), "{usage}");
    let unheld = number(&usage["unheld"], "joules") / number(&usage["unheld"], "gpu_seconds");
    assert!((77.0..=83.0).contains(&unheld), "{usage}");

    let table = fake.gpumon(&["usage"]).output().unwrap();
    let table = stdout(&table);
    assert!(table.contains("User") && table.contains(" exact") && table.contains("no process"), "{table}");
    let json = fake.gpumon(&["usage", "--json"]).output().unwrap();
    let json: Value = serde_json::from_str(&stdout(&json)).unwrap();
    assert_eq!(json["owners"][0]["user"], owner["user"]);
    for sleeper in &mut sleepers {
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
    }
}
