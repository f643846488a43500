use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
};

use gpumon_probe::model::Vendor;

use super::*;

fn expect_error(text: &str) -> String {
    AlertRules::from_toml(text, "alerts.toml")
        .unwrap_err()
        .to_string()
}

fn parse_rule(keys: &str) -> Rule {
    AlertRules::from_toml(&format!("[[rule]]\nname = \"a\"\n{keys}"), "f")
        .unwrap()
        .rules
        .remove(0)
}

#[test]
fn rule_is_parsed_with_defaults() {
    let hot = parse_rule("field = \"temperature.gpu_celsius\"\nabove = \"85 C\"");
    let Watch::Value {
        subject,
        bound,
        rate: None,
    } = hot.check.watch
    else {
        panic!("{hot:?}")
    };
    assert_eq!(subject.id(), "temperature.gpu_celsius");
    assert_eq!(
        bound,
        Threshold {
            is_above: true,
            value: 85.0,
            clear: 85.0,
            is_share: false
        }
    );
    assert_eq!(
        (hot.check.for_ms, hot.check.clear_for_ms, hot.severity),
        (0, 60_000, Severity::Warning)
    );
    let leak = parse_rule(
        "field = \"memory.used_bytes\"\nabove = \"1 GiB\"\nper = \"minute\"\nfor = \
         \"2m\"\nclear_for = \"0s\"",
    );
    let Watch::Value {
        rate: Some(rate), ..
    } = leak.check.watch
    else {
        panic!("{leak:?}")
    };
    assert_eq!(
        rate,
        Rate {
            per: RateUnit::Minute,
            over_ms: 60_000
        }
    );
    assert_eq!((leak.check.for_ms, leak.check.clear_for_ms), (120_000, 0));
    let xid = parse_rule(
        "condition = \"xid\"\nmin_severity = \"critical\"\nrepeat = \"4h\"\n\
         gpus = [1, \"GPU-1A2b\", \"AMD:0\"]",
    );
    assert_eq!(
        xid.check.watch,
        Watch::Condition {
            kind: Some("xid"),
            min_severity: Severity::Critical
        }
    );
    assert_eq!(
        xid.check.gpus,
        [
            GpuName::Index(1),
            GpuName::Uuid("gpu-1a2b".into()),
            GpuName::OfVendor(Vendor::Amd, 0)
        ]
    );
    assert_eq!(xid.repeat_ms, Some(14_400_000));
    assert_eq!(parse_rule("absent = true").check.watch, Watch::Absent(None));
    for class in LimitClass::ALL {
        let rule = parse_rule(&format!("limited_by = {:?}", class.name()));
        assert_eq!(rule.check.watch, Watch::LimitedBy(class));
    }
}

#[test]
fn rule_notifies_named_receivers_or_all() {
    let text = "
        [[webhook]]
        name = \"slack\"
        url = \"https://hooks.example.org/services/T0\"
        format = \"slack\"
        [[command]]
        name = \"desktop\"
        command = [\"notify-send\", \"{rule}\", \"{text}\"]
        timeout = \"3s\"
        [[rule]]
        name = \"a\"
        condition = \"xid\"
        [[rule]]
        name = \"b\"
        condition = \"xid\"
        notify = [\"desktop\"]
        [[rule]]
        name = \"c\"
        condition = \"xid\"
        notify = []
    ";
    let AlertRules { rules, receivers } = AlertRules::from_toml(text, "f").unwrap();
    let named: Vec<_> = rules.iter().map(|rule| rule.notify.join(" ")).collect();
    assert_eq!(named, ["slack desktop", "desktop", ""]);
    assert_eq!(
        [receivers[0].describe_kind(), receivers[1].describe_kind()],
        ["webhook (slack)", "command (notify-send)"]
    );
    assert_eq!(
        [receivers[0].timeout, receivers[1].timeout].map(|time| time.as_secs()),
        [10, 3]
    );
    assert!(
        !format!("{receivers:?}").contains("services"),
        "an address is shown nowhere"
    );
}

#[test]
fn webhook_address_is_read_from_url_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("url");
    let text = format!("[[webhook]]\nname = \"a\"\nurl_file = {file:?}\n");
    assert!(
        expect_error(&text).contains("cannot read"),
        "{}",
        expect_error(&text)
    );
    std::fs::write(&file, "https://hooks.example.org/x\n").unwrap();
    let DeliveryMethod::Webhook { address, .. } = AlertRules::from_toml(&text, "f")
        .unwrap()
        .receivers
        .remove(0)
        .method
    else {
        panic!("a webhook")
    };
    assert_eq!(address.target, "/x");
    std::fs::write(&file, "secret-word").unwrap();
    assert!(
        !expect_error(&text).contains("secret-word")
            && expect_error(&text).contains("https://HOST/PATH"),
        "{}",
        expect_error(&text)
    );
}

#[test]
fn errors_show_position_and_remedy() {
    let in_rule = |keys: &str| expect_error(&format!("[[rule]]\nname = \"a\"\n{keys}"));
    let hot = "field = \"temperature.gpu_celsius\"\n";
    for (keys, expected) in [
        (
            "",
            "alerts.toml:2:8: the rule has nothing to check; add `field",
        ),
        (
            "feild = \"x\"",
            "3:1: unknown key `feild`; did you mean `field`?",
        ),
        (
            "field = \"temperature.gpu_celcius\"\nabove = 1",
            "3:9: unknown field `temperature.gpu_celcius`; did you mean `temperature.gpu_celsius`?",
        ),
        (
            "field = \"temperature.hotspot\"\nabove = 1",
            "use one of temperature.gpu_celsius, temperature.junction_celsius",
        ),
        (
            "field = \"gpu\"\nabove = 1",
            "the page \"Fields\" of the documentation lists all fields",
        ),
        (
            "condition = \"throtled\"",
            "3:13: unknown condition `throtled`; did you mean `throttled`?",
        ),
        (
            "condition = \"xid\"\nabove = 1",
            "4:9: `above` has no effect in a rule with `condition`; remove it",
        ),
        (
            "condition = \"xid\"\nmin_severity = \"critcal\"",
            "unknown value `critcal`; did you mean `critical`?",
        ),
        (
            "limited_by = \"hots\"",
            "3:14: unknown value `hots`; did you mean `host`?",
        ),
        (
            "limited_by = \"cpu\"",
            "unknown value `cpu`; use one of idle, host, input, transfer",
        ),
        (
            "limited_by = \"host\"\nabove = \"50 %\"",
            "4:9: `above` has no effect in a rule with `limited_by`; remove it",
        ),
        (
            "limited_by = \"host\"\ncondition = \"xid\"",
            "`condition` has no effect in a rule with `limited_by`",
        ),
        (
            "absent = false",
            "3:10: `absent` must be true; to check a value instead, replace `absent`",
        ),
        (
            "absent = true\nabove = 3",
            "`above` has no effect in a rule with `absent`",
        ),
        (hot, "a threshold is missing; add `above"),
        (
            &format!("{hot}above = 1\nbelow = 2"),
            "5:9: a rule can have only one threshold; split it into two rules",
        ),
        (
            &format!("{hot}above = 85\nclear_above = 80"),
            "this key has no effect in a rule with `above`; use `clear_below` instead",
        ),
        (
            &format!("{hot}above = 85\nclear_below = 90"),
            "would clear before it fires; `clear_below` must be at most `above`",
        ),
        (
            &format!("{hot}above = \"85 GiB\""),
            "4:9: the unit `GiB` does not fit this field; valid units are: C, °C",
        ),
        (
            &format!("{hot}above = \"hot\""),
            "expected a number, such as 85, or a number with its unit",
        ),
        (
            &format!("{hot}above = 850"),
            "temperature.gpu_celsius is always between -40 and 200",
        ),
        (
            &format!("{hot}above = 85\nover = \"5m\""),
            "`over` is the window of a rate; add `per",
        ),
        (
            &format!("{hot}above = 85\nper = \"day\""),
            "unknown value `day`; use one of second, minute, hour",
        ),
        (
            &format!("{hot}above = 85\nper = \"minute\"\nover = \"2h\""),
            "the duration must be from 10 s to 3600 s",
        ),
        (
            &format!("{hot}above = 85\nfor = 5"),
            "expected a duration of up to 30 days with a unit",
        ),
        (
            &format!("{hot}above = 85\nrepeat = \"5s\""),
            "at least 60 s",
        ),
        (
            &format!("{hot}above = 85\nsilence = [\"at night\"]"),
            "5:12: `at night` is not a valid silence; use hours of the day",
        ),
        (
            &format!("{hot}above = 85\ngpus = [\"H200\"]"),
            "'H200' is not a GPU: use an index (0), an index among the GPUs of a vendor",
        ),
        (
            &format!("{hot}above = 85\ngpus = []"),
            "`gpus` is empty; list at least one GPU",
        ),
        (
            "field = \"host.memory.used_bytes\"\nabove = \"90 %\"\ngpus = [0]",
            "belongs to the host, not to a GPU",
        ),
        (
            "field = \"memory.used_bytes\"\nabove = \"90 %\"\nclear_below = \"20 GiB\"",
            "must either both be in % or both be absolute values",
        ),
        (
            &format!("{hot}above = 85\nnotify = [\"slack\"]"),
            "there is no receiver `slack`; add a [[webhook]]",
        ),
        (
            &format!("{hot}above = 85\nmessage = \"\"\"a\nb\"\"\""),
            "a message must have 1 to 500 characters",
        ),
    ] {
        let error = in_rule(keys);
        assert!(
            error.contains(expected) && error.starts_with("alerts.toml:"),
            "{keys}: {error}"
        );
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let twice = "[[rule]]\nname = \"a\"\ncondition = \"xid\"\n";
    assert!(
        expect_error(&twice.repeat(2)).contains("5:8: there are two rules named `a`"),
        "{}",
        expect_error(&twice.repeat(2))
    );
    for (text, expected) in [
        (
            "[[webhook]]\nname = \"a\"",
            "the webhook has no URL; add `url",
        ),
        (
            "[[webhook]]\nname = \"a\"\nurl = \"https://u:p@h/\"",
            "contains a user name, which is not sent",
        ),
        (
            "[[webhook]]\nname = \"a\"\nurl = \"https://h/\"\nformat = \"teams\"",
            "unknown value `teams`; use one of json, slack",
        ),
        (
            "[[command]]\nname = \"a\"\ncommand = []",
            "the command is empty; start it with a program",
        ),
        (
            "[[command]]\nname = \"a\"\ncommand = [\"x\", \"{rul}\"]",
            "unknown placeholder `{rul}`; did you mean `rule`?",
        ),
        (
            "[[command]]\nname = \"a\"\ncommand = [\"x\"]\ntimeout = \"2m\"",
            "from 1 s to 60 s",
        ),
        (
            "[[command]]\nname = \"a\"\ncommand = [\"sh\", \"-ec\", \"wall '{text}'\"]",
            "3:25: `{text}` contains names of processes, which any user can choose, and `sh` \
             might execute its arguments",
        ),
        (
            "[[command]]\nname = \"a\"\ncommand = [\"{rule}\"]",
            "the program cannot be a placeholder",
        ),
        (
            "[[rules]]\nname = \"a\"",
            "unknown key `rules`; did you mean `rule`?",
        ),
    ] {
        assert!(
            expect_error(text).contains(expected),
            "{text}: {}",
            expect_error(text)
        );
    }
}

#[test]
fn text_placeholder_is_refused_in_inline_code() {
    let error_of = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
        let text = format!(
            "[[command]]\nname = \"a\"\ncommand = [{}]\n",
            words.join(", ")
        );
        AlertRules::from_toml(&text, "alerts.toml")
            .err()
            .map(|error| error.to_string())
    };
    for words in [
        &["ssh", "host", "wall", "{text}"][..],
        &["ssh", "host", "wall '{text}'"],
        &["perl", "-e", "print '{text}'"],
        &["python3", "-c", "print('{text}')"],
        &["node", "--eval", "'{text}'"],
        &["ruby", "-e", "'{text}'"],
        &["sh", "-c", "echo \"$1\"", "sh", "{text}"],
        &["sudo", "sh", "-c", "{text}"],
        &["watch", "{text}"],
        &["env", "-S", "{text}"],
        &["xargs", "{text}"],
        &["find", "/", "-exec", "{text}", ";"],
        &["/opt/wrapper", "--say={text}"],
        &["awk", "BEGIN{system(\"{text}\")}"],
    ] {
        let error = error_of(words).unwrap_or_else(|| panic!("{words:?} is accepted"));
        assert!(error.contains("$GPUMON_ALERT_TEXT"), "{words:?}: {error}");
    }
    for words in [
        &["notify-send", "--app-name=gpumon", "{rule}", "{text}"][..],
        &["/usr/bin/logger", "-t", "gpumon", "{severity}: {text}"],
        &["sh", "-c", "echo \"$GPUMON_ALERT_TEXT\""],
        &["ssh", "host", "page", "{gpu}", "{severity}"],
    ] {
        assert_eq!(error_of(words), None, "{words:?}");
    }
}

#[test]
fn error_never_quotes_webhook_address_in_wrong_key() {
    for text in [
        "[[webhook]]\nname = \"a\"\nurl = \"http:/hooks.example.org/secret\"",
        "[[webhook]]\nname = \"a\"\nurl = \"https://h/\"\nformat = \
         \"https://hooks.example.org/secret\"",
        "[[webhook]]\nname = \"a\"\nurl = \"https://h/\"\ntimeout = \
         \"https://hooks.example.org/secret\"",
        "[[rule]]\nname = \"a\"\ncondition = \"https://hooks.example.org/secret\"",
        "[[rule]]\nname = \"a\"\ncondition = \"xid\"\nnotify = \
         [\"https://hooks.example.org/secret\"]",
        "[[webhook]]\nname = \"a\"\n\"https://hooks.example.org/secret\" = 1",
        "[[webhook]]\nname = \"a\"\nurl = https://hooks.example.org/secret",
    ] {
        assert!(
            !expect_error(text).contains("secret"),
            "{text}: {}",
            expect_error(text)
        );
    }
}

#[test]
fn file_that_others_can_write_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let read = |text: &str, mode: u32| {
        fs::write(file.path(), text).unwrap();
        fs::set_permissions(file.path(), Permissions::from_mode(mode)).unwrap();
        AlertRules::read(file.path())
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    let (rule, command) = (
        "[[rule]]\nname = \"a\"\ncondition = \"xid\"\n",
        "[[command]]\nname = \"b\"\ncommand = [\"true\"]\n",
    );
    assert!(read(rule, 0o644).is_ok() && read(command, 0o640).is_ok());
    for (text, mode) in [(rule, 0o666), (command, 0o664), (command, 0o646)] {
        let error = read(text, mode).unwrap_err();
        assert!(
            error.contains("can be written to by others") && error.contains("chmod go-w"),
            "{error}"
        );
    }
}

#[test]
fn rule_on_slowly_read_field_requests_frequent_readings() {
    let watch = |keys: &str| {
        AlertRules::from_toml(&format!("[[rule]]\nname = \"a\"\n{keys}"), "f")
            .unwrap()
            .uses_slow_fields()
    };
    assert!(watch("field = \"activity.sm_percent\"\nbelow = 5"));
    assert!(watch("field = \"host.cpu.busy_percent\"\nabove = 95"));
    assert!(watch(
        "field = \"power.energy_joules_total\"\nabsent = true"
    ));
    assert!(!watch("field = \"temperature.gpu_celsius\"\nabove = 85"));
    assert!(!watch("condition = \"throttled\""));
    assert!(!watch("limited_by = \"host\""));
}
