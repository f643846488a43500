//! Settings that are read, refused and written.

use std::fs;

use super::*;

fn file(name: &str, text: &str) -> File {
    let path = env::temp_dir().join(format!("gpumon-settings-{}-{name}.toml", std::process::id()));
    fs::write(&path, text).unwrap();
    File::read(&path, true).unwrap()
}

fn error(text: &str) -> String {
    Settings::of(&file("error", text)).unwrap_err().to_string()
}

#[test]
fn everything_that_can_be_set_is_read() {
    let text = "# mine\ntheme = \"light\"\ninterval_ms = 250\nview = \"host\"\nsort = \"sm\"\ndescending = false\n\
                tree = true\ncolumns = [\"pid\", \"what\"]\nmetrics = [\"tensor\", \"pcie-tx\"]\nrange_s = 900\n\
                glyphs = \"ascii\"\nmouse = false\n";
    let settings = Settings::of(&file("all", text)).unwrap();
    assert_eq!((settings.theme, settings.interval_ms, settings.view), (ThemeName::Light, 250, View::Host));
    assert_eq!((settings.sort, settings.descending, settings.tree), (Column::Sm, false, true));
    assert_eq!(settings.columns, [Column::Pid, Column::What]);
    assert_eq!(settings.metrics, [position("tensor").unwrap(), position("pcie-tx").unwrap()]);
    assert_eq!((settings.range_s, settings.glyphs, settings.mouse), (900, Some(Glyphs::Ascii), false));
    assert_eq!(text.lines().count() - 1, KEYS.len());
    assert_eq!(Settings::of(&file("empty", "")).unwrap(), Settings::default());
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
    assert!(error("tree = 1").contains("use true or false"));
    assert!(error("metrics = []").contains("use a list"));
    assert!(error("range_s = 61").contains("use one of 60,"));
    assert!(error("sort = 3").contains("use one of gpu,"));
    let broken = error("tree = true\nsort = \n");
    assert!(broken.contains("line 2: ") && broken.lines().count() == 1, "{broken}");
}

#[test]
fn writing_keeps_comments_and_order() {
    let mut file = file("write", "# mine\nsort = \"pid\"   # by number\n\n# night\ntheme = \"dark\"");
    let settings = Settings { theme: ThemeName::HighContrast, sort: Column::Sm, ..Settings::default() };
    file.write(&settings.written()).unwrap();
    let text = fs::read_to_string(&file.path).unwrap();
    assert!(text.starts_with("# mine\nsort = \"sm\"   # by number\n\n# night\ntheme = \"high-contrast\"\n"), "{text}");
    assert_eq!(Settings::of(&File::read(&file.path, true).unwrap()).unwrap(), settings);
    // A second time changes nothing.
    file.write(&settings.written()).unwrap();
    assert_eq!(fs::read_to_string(&file.path).unwrap(), text);
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
    let mut file = File::read(&folder.join("a/top.toml"), false).unwrap();
    file.write(&Settings::default().written()).unwrap();
    assert!(folder.join("a/top.toml").is_file());
    assert!(File::read(&folder.join("b.toml"), true).is_err(), "one that was named must be there");
    fs::remove_dir_all(folder).unwrap();
}
