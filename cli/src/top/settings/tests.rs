//! Settings that are read, refused and written.

use std::{fs, path::Path};

use super::*;

fn file(name: &str, text: &str) -> File {
    let path = env::temp_dir().join(format!("gpumon-settings-{}-{name}.toml", std::process::id()));
    fs::write(&path, text).unwrap();
    File::named(&path).unwrap()
}

fn read(file: &File) -> Settings {
    let (settings, mistakes) = Settings::of(file);
    assert!(mistakes.is_empty(), "{mistakes:?}");
    settings
}

fn error(text: &str) -> String {
    let (_, mistakes) = Settings::of(&file("error", text));
    mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[test]
fn everything_that_can_be_set_is_read() {
    let text = "# mine\ntheme = \"light\"\ninterval_ms = 250\nview = \"host\"\nsort = \"sm\"\ndescending = false\n\
                tree = true\ncolumns = [\"pid\", \"what\"]\nmetrics = [\"tensor\", \"pcie-tx\"]\nrange_s = 900\n\
                glyphs = \"ascii\"\nmouse = false\nutilization_thresholds = [1, 2]\nmemory_thresholds = [3, 4]\n\
                temperature_thresholds = [5, 6]\npower_thresholds = [7, 100]\n";
    let settings = read(&file("all", text));
    assert_eq!((settings.theme, settings.interval_ms, settings.view), (ThemeName::Light, 250, View::Host));
    assert_eq!((settings.sort, settings.descending, settings.tree), (Column::Sm, false, true));
    assert_eq!(settings.columns, [Column::Pid, Column::What]);
    assert_eq!(settings.metrics, [position("tensor").unwrap(), position("pcie-tx").unwrap()]);
    assert_eq!((settings.range_s, settings.glyphs, settings.mouse), (900, Some(Glyphs::Ascii), false));
    let thresholds = Thresholds { utilization: [1, 2], memory: [3, 4], temperature: [5, 6], power: [7, 100] };
    assert_eq!(settings.thresholds, thresholds);
    assert_eq!(text.lines().count() - 1, KEYS.len());
    assert_eq!(read(&file("empty", "")), Settings::default());
}

#[test]
fn a_mistake_is_named_by_its_line_and_the_nearest_word() {
    assert!(error("tree = true\nthme = \"dark\"\n").contains("line 2: unknown setting 'thme': did you mean 'theme'?"));
    assert!(error("theme = \"lihgt\"").contains("line 1: theme cannot be 'lihgt': did you mean 'light'?"));
    assert!(
        error("\n\ncolumns = [\"pid\", \"memroy\"]")
            .contains("line 3: columns cannot be 'memroy': did you mean 'memory'?")
    );
    assert!(error("interval_ms = 5").contains("line 1: interval_ms cannot be 5: use a number from 100 to 60000"));
    assert!(error("interval_ms = \"1s\"").contains("use a number"));
    for wrong in ["7", "[10]", "[75, 10]", "[0, 10]", "[10, 101]", "[\"a\", 10]"] {
        let error = error(&format!("power_thresholds = {wrong}"));
        assert!(error.contains("line 1: power_thresholds cannot be") && error.contains("as [10, 75]"), "{error}");
    }
    assert!(error("tree = 1").contains("use true or false"));
    assert!(error("metrics = []").contains("use a list"));
    assert!(error("range_s = 61").contains("use one of 1, 10, 60,"));
    assert!(error("sort = 3").contains("use one of gpu,"));
    let evil = error("theme = \"\\u001b]0;pwn\\u0007\"");
    assert!(evil.contains("pwn") && !evil.contains(char::is_control), "{evil:?}");
    let broken = error("tree = true\nsort = \n");
    assert!(broken.contains("line 2: ") && broken.lines().count() == 1, "{broken}");
}

#[test]
fn what_is_not_mistaken_is_set_all_the_same() {
    let bad = file("mistaken", "thme = \"dark\"\ntheme = \"light\"\nsort = \"memroy\"\ntree = true\n");
    let (settings, mistakes) = Settings::of(&bad);
    assert_eq!(settings, Settings { theme: ThemeName::Light, tree: true, ..Settings::default() });
    assert_eq!(mistakes.len(), 2, "{mistakes:?}");
}

#[test]
fn writing_keeps_comments_and_order() {
    let mut file = file("write", "# mine\nsort = \"pid\"   # by number\n\n# night\ntheme = \"dark\"");
    let settings = Settings { theme: ThemeName::HighContrast, sort: Column::Sm, ..Settings::default() };
    file.write(&settings.written()).unwrap();
    let text = fs::read_to_string(&file.path).unwrap();
    assert!(text.starts_with("# mine\nsort = \"sm\"   # by number\n\n# night\ntheme = \"high-contrast\"\n"), "{text}");
    assert_eq!(read(&File::named(&file.path).unwrap()), settings);
    // A second time changes nothing.
    file.write(&settings.written()).unwrap();
    assert_eq!(fs::read_to_string(&file.path).unwrap(), text);
}

#[test]
fn writing_keeps_what_it_does_not_know_and_who_may_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let text = "theme = \"dark\"\nfuture = 1 # later\n\n# of another program\n[other]\nsort = \"x\"\n[[list]]\n";
    let mut file = file("unknown", text);
    fs::set_permissions(&file.path, fs::Permissions::from_mode(0o600)).unwrap();
    file.write(&Settings { theme: ThemeName::Light, ..Settings::default() }.written()).unwrap();
    let written = fs::read_to_string(&file.path).unwrap();
    assert!(written.starts_with("theme = \"light\"\nfuture = 1 # later\n\ninterval_ms = 1000\n"), "{written}");
    assert!(written.ends_with("\n# of another program\n[other]\nsort = \"x\"\n[[list]]\n"), "{written}");
    assert_eq!(Settings::of(&file).0, Settings { theme: ThemeName::Light, ..Settings::default() });
    assert_eq!(fs::metadata(&file.path).unwrap().permissions().mode() & 0o777, 0o600);
    file.write(&Settings { theme: ThemeName::Light, ..Settings::default() }.written()).unwrap();
    assert_eq!(fs::read_to_string(&file.path).unwrap(), written);
}

#[test]
fn a_file_that_somebody_broke_meanwhile_is_not_written_over() {
    let mut file = file("broken", "tree = true\n");
    fs::write(&file.path, "tree = \n").unwrap();
    assert!(file.write(&Settings::default().written()).is_err());
    assert_eq!(fs::read_to_string(&file.path).unwrap(), "tree = \n");
}

#[test]
fn a_folder_that_is_not_there_is_made() {
    let folder = env::temp_dir().join(format!("gpumon-settings-{}", std::process::id()));
    let (mut file, bad) = File::usual(&folder.join("a/top.toml"));
    assert!(bad.is_none());
    file.write(&Settings::default().written()).unwrap();
    assert!(folder.join("a/top.toml").is_file());
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_file_that_is_named_need_not_be_there_but_its_folder_must() {
    let folder = env::temp_dir().join(format!("gpumon-named-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let mut file = File::named(&folder.join("new.toml")).unwrap();
    assert!(file.is_new);
    file.write(&Settings { tree: true, ..Settings::default() }.written()).unwrap();
    let written = File::named(&folder.join("new.toml")).unwrap();
    assert!(!written.is_new && read(&written).tree);
    let missing = File::named(&folder.join("missing/new.toml")).unwrap_err().to_string();
    assert!(missing.contains("missing/new.toml") && missing.contains("check the path"), "{missing}");
    assert!(File::named(&folder).is_err(), "a folder is no file");
    assert!(File::named(Path::new("gpumon-settings-that-are-not-here.toml")).unwrap().is_new, "in this folder");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_file_that_nobody_named_stops_nothing_and_is_not_written_over() {
    let (mut file, bad) = File::usual(Path::new("/dev/null/gpumon/top.toml"));
    let bad = bad.unwrap().to_string();
    assert!(bad.contains("cannot read /dev/null/gpumon/top.toml"), "{bad}");
    assert_eq!(read(&file), Settings::default());
    let error = file.write(&Settings::default().written()).unwrap_err().to_string();
    assert!(error.contains("cannot read"), "{error}");
    assert_eq!(File::usual(Path::new("/nowhere/gpumon/top.toml")).1.map(|bad| bad.to_string()), None);
}
