//! Years of history in one SQLite file, which any SQLite tool can read.
//!
//! - [`schema`] defines the tables, generated from the field catalog, and their migrations.
//! - [`write`](mod@write) adds rows, [`maintenance`] makes the coarser tiers and deletes old rows.
//! - [`usage`] stores the usage of each owner over time.
//! - [`read`] reads a time span into a grid, [`salvage`] copies the readable rows of a damaged
//!   file.

// SQLite's integers are signed. Times are far below the maximum, so the casts cannot wrap.
#![allow(clippy::cast_possible_wrap)]

mod maintenance;
mod read;
#[cfg(test)]
mod reference_tests;
mod salvage;
mod schema;
pub mod usage;
mod write;

use std::{
    fmt::Write,
    fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
    time::Duration,
};

use gpumon_probe::safe_file::{AcceptedOwner, Folder, FolderError};
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi::SQLITE_IOERR_SHMSIZE};

use crate::bucket::BUCKET_MS;

pub use self::read::{MAX_EVENTS, StoredSpan};
pub(crate) use self::{
    maintenance::{Allowance, RollUpProgress},
    salvage::Salvage,
    write::StoredDevices,
};

/// The name of the database file in its directory.
pub const FILE_NAME: &str = "history.db";

/// The tables of one resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredTier {
    /// The suffix of the table names.
    pub name: &'static str,
    /// The time that one row covers, in milliseconds.
    pub resolution_ms: u64,
    /// The time for which rows are kept, in milliseconds.
    pub keep_ms: u64,
}

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// All tiers, the finest first.
pub const TIERS: [StoredTier; 3] = [
    StoredTier {
        name: "10s",
        resolution_ms: BUCKET_MS,
        keep_ms: 2 * DAY_MS,
    },
    StoredTier {
        name: "1min",
        resolution_ms: 60_000,
        keep_ms: 30 * DAY_MS,
    },
    StoredTier {
        name: "15min",
        resolution_ms: 900_000,
        keep_ms: 365 * DAY_MS,
    },
];

/// The longest time for which any tier keeps rows, in milliseconds.
pub const REACH_MS: u64 = TIERS[TIERS.len() - 1].keep_ms;

/// The history database in a directory.
#[derive(Debug)]
pub struct Database {
    connection: Connection,
    /// The inode of the file when it was opened.
    inode: Option<u64>,
}

/// The reason why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The file was written by a newer version of gpumon.
    #[error(
        "{FILE_NAME} was written by a newer gpumon (its schema is {found}, this version supports \
         {}): update gpumon, or choose another directory",
        schema::VERSION
    )]
    Newer {
        /// The schema version of the file.
        found: i64,
    },
    /// The file is a database of another program.
    #[error("{FILE_NAME} belongs to another program: choose another directory")]
    Foreign,
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error("{FILE_NAME} cannot be opened: {0}")]
    File(io::Error),
    /// An error from SQLite.
    #[error("{}", describe_sqlite_error(.0))]
    Sqlite(#[from] rusqlite::Error),
}

impl DatabaseError {
    /// Returns `true` if the file is damaged or is not an SQLite database.
    pub fn is_corrupt(&self) -> bool {
        let Self::Sqlite(error) = self else {
            return false;
        };
        matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
        )
    }
}

/// Returns the inode of a directory's database file.
pub(crate) fn read_inode(folder: &Path) -> Option<u64> {
    fs::metadata(folder.join(FILE_NAME))
        .ok()
        .map(|file| file.ino())
}

/// Returns the path of the database in a directory. All links in the path are resolved, because
/// SQLite opens the file without following links.
fn resolve_path(folder: &Path) -> Result<PathBuf, DatabaseError> {
    Ok(fs::canonicalize(folder)
        .map_err(DatabaseError::File)?
        .join(FILE_NAME))
}

/// Returns the SQLite URI for a path, with the given options.
fn build_uri(path: &Path, options: &str) -> String {
    let bytes = path.as_os_str().as_bytes().iter();
    let escaped = bytes.fold(String::new(), |mut all, byte| {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                all.push(char::from(*byte));
            }
            // Writing to a string cannot fail, so the result is dropped.
            _ => drop(write!(all, "%{byte:02X}")),
        }
        all
    });
    format!("file:{escaped}?{options}")
}

/// Returns the cause and remedy of common errors, and SQLite's own message.
fn describe_sqlite_error(error: &rusqlite::Error) -> String {
    // SQLite reports this code if the disk is too full to enlarge the shared-memory file.
    let has_no_room = error
        .sqlite_error()
        .is_some_and(|error| error.extended_code == SQLITE_IOERR_SHMSIZE);
    let known = match error.sqlite_error_code() {
        _ if has_no_room => "the disk is full: free some space",
        Some(ErrorCode::DiskFull) => "the disk is full: free some space",
        Some(ErrorCode::ReadOnly) => "the database is read-only: allow writing to it",
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            "the database cannot be opened: check its owner and permissions"
        }
        Some(ErrorCode::SystemIoFailure) => {
            "the disk reports an input/output error: check the disk"
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program has locked the database: stop that program, or wait until it has \
             finished"
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => "the database is damaged",
        _ => return error.to_string(),
    };
    format!("{known} ({error})")
}

impl Database {
    /// Opens the database of a directory for writing, and creates it if there is none.
    ///
    /// # Errors
    /// Returns an error if the database cannot be opened or created, or has an unsupported version.
    pub fn open(folder: &Path) -> Result<Self, DatabaseError> {
        // The file contains names of users and their processes, so it is private. SQLite gives its
        // companion files the same mode.
        drop(
            Folder::create(folder, AcceptedOwner::Own)?
                .open_file(FILE_NAME)
                .map_err(DatabaseError::File)?,
        );
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(
            resolve_path(folder)?,
            flags | OpenFlags::SQLITE_OPEN_NOFOLLOW,
        )?;
        connection.busy_timeout(Duration::from_secs(5))?;
        let database = Self {
            connection,
            inode: read_inode(folder),
        };
        database.check_version()?;
        // Only a new file has version 0. An existing file must not be changed before it has been
        // read, because it may be damaged.
        if database
            .connection
            .pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))?
            == 0
        {
            // Rows are about 1 KiB. Pages of 8 KiB waste less space than smaller pages.
            database.set_pragma("page_size", 8192)?;
            database.set_pragma("auto_vacuum", 2)?;
        }
        database.set_pragma("journal_mode", "wal")?;
        // With `synchronous` set to `normal`, a killed process loses nothing, but a power failure
        // may lose the rows since the last checkpoint.
        database.set_pragma("synchronous", "normal")?;
        database.set_pragma("cache_size", -256)?;
        database.set_pragma("wal_autocheckpoint", 128)?;
        database.set_pragma("journal_size_limit", 2 << 20)?;
        schema::migrate_schema(&database.connection)?;
        Ok(database)
    }

    /// Opens the database of a directory for reading.
    ///
    /// # Errors
    /// Returns an error if there is no database, or if it cannot be read or has an unsupported
    /// version.
    pub fn open_to_read(folder: &Path) -> Result<Self, DatabaseError> {
        let path = resolve_path(folder)?;
        let opened = Self::open_uri(folder, &build_uri(&path, "mode=ro"));
        // To read a database in WAL mode, SQLite creates companion files, which fails on a full or
        // read-only disk. If the database was closed cleanly, it is complete without these files.
        // It also cannot change on such a disk, so it is opened as immutable.
        let is_refused = |error: &DatabaseError| {
            let DatabaseError::Sqlite(error) = error else {
                return false;
            };
            let code = error.sqlite_error_code();
            matches!(code, Some(ErrorCode::CannotOpen | ErrorCode::DiskFull))
                || matches!(code, Some(ErrorCode::ReadOnly | ErrorCode::SystemIoFailure))
        };
        let is_closed = || {
            fs::metadata(folder.join(format!("{FILE_NAME}-wal"))).map_or(true, |wal| wal.len() == 0)
        };
        match opened {
            Err(error) if is_refused(&error) && is_closed() => {
                Self::open_uri(folder, &build_uri(&path, "immutable=1")).map_err(|_| error)
            }
            opened => opened,
        }
    }

    fn open_uri(folder: &Path, uri: &str) -> Result<Self, DatabaseError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_NOFOLLOW)?;
        connection.busy_timeout(Duration::from_secs(1))?;
        let database = Self {
            connection,
            inode: read_inode(folder),
        };
        database.set_pragma("cache_size", -1024)?;
        database.check_version()?;
        Ok(database)
    }

    /// Returns the inode of the file that was opened.
    pub(crate) fn inode(&self) -> Option<u64> {
        self.inode
    }

    /// Returns an error if the file belongs to another program or to a newer version of gpumon.
    fn check_version(&self) -> Result<(), DatabaseError> {
        let number = |name| {
            self.connection
                .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
        };
        let (found, application) = (number("user_version")?, number("application_id")?);
        let tables: i64 =
            self.connection
                .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        match (application, found) {
            (0, 0) if tables == 0 => Ok(()),
            (schema::APPLICATION_ID, ..=schema::VERSION) => Ok(()),
            (schema::APPLICATION_ID, found) => Err(DatabaseError::Newer { found }),
            _ => Err(DatabaseError::Foreign),
        }
    }

    fn set_pragma(&self, name: &str, value: impl rusqlite::ToSql) -> Result<(), rusqlite::Error> {
        self.connection
            .pragma_update_and_check(None, name, value, |_| Ok(()))
            .or_else(|error| match error {
                // Some pragmas return no row.
                rusqlite::Error::QueryReturnedNoRows => Ok(()),
                error => Err(error),
            })
    }
}
