//! Files that are read again when they change, without a restart. If a changed file cannot be read,
//! the previous contents are kept.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, RwLock},
};

use gpumon_probe::file_stamp::FileStamp;

use crate::lock;

/// The paths of the files that were read, and the loaded contents or an error.
pub(crate) type LoadedFiles<T> = (Vec<PathBuf>, Result<T, String>);

type Stamps = Vec<(PathBuf, Option<FileStamp>)>;

/// The contents of a file and of the files that it refers to.
pub(crate) struct WatchedFile<T> {
    load: Box<dyn Fn() -> LoadedFiles<T> + Send + Sync>,
    current: RwLock<Arc<T>>,
    /// The paths and stamps of the files when they were last read.
    seen: Mutex<Stamps>,
}

impl<T> WatchedFile<T> {
    /// Loads the files. `load` also returns the paths of the files, even if there was an error.
    ///
    /// # Errors
    /// Returns the error of `load`.
    pub(crate) fn new(
        load: impl Fn() -> LoadedFiles<T> + Send + Sync + 'static,
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

    /// Loads the files again if at least one has changed. Returns `None` if no file has changed, so
    /// that an error is returned only once. `is_fit` compares the old with the new contents, and
    /// can refuse the new contents.
    pub(crate) fn reload_if_changed(
        &self,
        is_fit: impl FnOnce(&T, &T) -> Result<(), String>,
    ) -> Option<Result<(), String>> {
        let mut seen = lock::lock(&self.seen);
        // The stamps are taken before the files are read. Changes that are made while reading are
        // therefore noticed at the next call.
        let before = read_stamps(seen.iter().map(|(path, _)| path.clone()).collect());
        if before == *seen {
            return None;
        }
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
    fn invalid_file_does_not_replace_previous_contents() {
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
        let watched = WatchedFile::new(load).unwrap();
        assert_eq!(
            (watched.reload_if_changed(|_, _| Ok(())), *watched.current()),
            (None, 1)
        );
        fs::write(&path, "22").unwrap();
        assert_eq!(
            (watched.reload_if_changed(|_, _| Ok(())), *watched.current()),
            (Some(Ok(())), 22)
        );
        fs::write(&path, "two").unwrap();
        assert!(matches!(
            watched.reload_if_changed(|_, _| Ok(())),
            Some(Err(_))
        ));
        assert_eq!(
            (watched.reload_if_changed(|_, _| Ok(())), *watched.current()),
            (None, 22)
        );
        fs::remove_file(&path).unwrap();
        assert!(matches!(
            watched.reload_if_changed(|_, _| Ok(())),
            Some(Err(_))
        ));
        assert_eq!(
            (watched.reload_if_changed(|_, _| Ok(())), *watched.current()),
            (None, 22)
        );
        fs::write(&path, "3").unwrap();
        assert_eq!(
            (watched.reload_if_changed(|_, _| Ok(())), *watched.current()),
            (Some(Ok(())), 3)
        );
    }
}
