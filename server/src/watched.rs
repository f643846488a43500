//! Files that are read anew when they change, without a restart. What cannot be read leaves in
//! force what there was.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, RwLock},
};

use gpumon_probe::file_stamp::FileStamp;

use crate::lock;

/// Which files were read, and what they make up.
pub(crate) type Loaded<T> = (Vec<PathBuf>, Result<T, String>);

type Stamps = Vec<(PathBuf, Option<FileStamp>)>;

/// What a file, and those that it names, make up.
pub(crate) struct Watched<T> {
    load: Box<dyn Fn() -> Loaded<T> + Send + Sync>,
    current: RwLock<Arc<T>>,
    /// As the files were when they were read last.
    seen: Mutex<Stamps>,
}

impl<T> Watched<T> {
    /// Loads it; `load` also says which files that takes, as far as it came.
    ///
    /// # Errors
    /// As `load` says.
    pub(crate) fn new(
        load: impl Fn() -> Loaded<T> + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let (paths, loaded) = load();
        let seen = Mutex::new(read_stamps(paths));
        Ok(Self {
            load: Box::new(load),
            current: RwLock::new(Arc::new(loaded?)),
            seen,
        })
    }

    pub(crate) fn current(&self) -> Arc<T> {
        Arc::clone(&lock::read(&self.current))
    }

    /// Loads it anew where a file has changed. `None` where none has; what is wrong with a changed
    /// one is told once. `is_fit` may refuse it beside what there was.
    pub(crate) fn refresh(
        &self,
        is_fit: impl FnOnce(&T, &T) -> Result<(), String>,
    ) -> Option<Result<(), String>> {
        let mut seen = lock::lock(&self.seen);
        if seen
            .iter()
            .all(|(path, stamp)| FileStamp::read(path) == *stamp)
        {
            return None;
        }
        // Before they are read: what changes meanwhile is read again.
        let before: Vec<_> = seen
            .iter()
            .map(|(path, _)| (path.clone(), FileStamp::read(path)))
            .collect();
        let (paths, loaded) = (self.load)();
        let stamp = |path: PathBuf| {
            let known = before
                .iter()
                .find(|(known, _)| *known == path)
                .map(|(_, stamp)| *stamp);
            let stamp = known.unwrap_or_else(|| FileStamp::read(&path));
            (path, stamp)
        };
        *seen = paths.into_iter().map(stamp).collect();
        Some(loaded.and_then(|new| {
            is_fit(&self.current(), &new)?;
            *lock::write(&self.current) = Arc::new(new);
            Ok(())
        }))
    }
}

fn read_stamps(paths: Vec<PathBuf>) -> Stamps {
    paths
        .into_iter()
        .map(|path| (path.clone(), FileStamp::read(&path)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_broken_file_leaves_what_there_was_and_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("number");
        fs::write(&path, "1").unwrap();
        let file = path.clone();
        let load = move || {
            let text = fs::read_to_string(&file).map_err(|error| error.to_string());
            (
                vec![file.clone()],
                text.and_then(|text| text.parse::<u32>().map_err(|error| error.to_string())),
            )
        };
        let watched = Watched::new(load).unwrap();
        assert_eq!(
            (watched.refresh(|_, _| Ok(())), *watched.current()),
            (None, 1)
        );
        fs::write(&path, "22").unwrap();
        assert_eq!(
            (watched.refresh(|_, _| Ok(())), *watched.current()),
            (Some(Ok(())), 22)
        );
        fs::write(&path, "two").unwrap();
        assert!(matches!(watched.refresh(|_, _| Ok(())), Some(Err(_))));
        assert_eq!(
            (watched.refresh(|_, _| Ok(())), *watched.current()),
            (None, 22)
        );
        fs::remove_file(&path).unwrap();
        assert!(matches!(watched.refresh(|_, _| Ok(())), Some(Err(_))));
        assert_eq!(
            (watched.refresh(|_, _| Ok(())), *watched.current()),
            (None, 22)
        );
        fs::write(&path, "3").unwrap();
        assert_eq!(
            (watched.refresh(|_, _| Ok(())), *watched.current()),
            (Some(Ok(())), 3)
        );
    }
}
