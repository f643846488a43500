//! Years of the past, in one SQLite file that every tool reads.
//!
//! - [`schema`] is the tables, made from the catalogue of fields, and their migrations.
//! - [`write`] adds what has come, [`roll_up`] makes the coarser tiers, [`retention`] forgets.
//! - [`usage`] is who used how much when.
//! - [`read`] puts a span into a grid, [`salvage`] takes over what a damaged file still has.

// SQLite's whole numbers are signed; times are far below the largest.
#![allow(clippy::cast_possible_wrap)]

mod read;
mod retention;
mod roll_up;
mod salvage;
mod schema;
mod usage;
mod write;

use std::{
    fmt::Write,
    fs, io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
    time::Duration,
};

use gpumon_probe::safe_file::{Folder, FolderError, Owner};
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi::SQLITE_IOERR_SHMSIZE};

use crate::bucket::BUCKET_MS;

pub use self::read::{EVENTS, StoredSpan};
pub use self::schema::reference;
pub(crate) use self::{
    retention::{Allowance, Limits},
    roll_up::RolledUp,
    salvage::Salvage,
    write::Devices,
};

/// The name of the file in its folder.
pub const FILE: &str = "history.db";

/// A tier of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredTier {
    /// How the names of its tables end.
    pub name: &'static str,
    /// The time of a row.
    pub resolution_ms: u64,
    /// How long rows are kept.
    pub keep_ms: u64,
}

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The tiers, the finest first.
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

/// How far back it reaches.
pub const REACH_MS: u64 = TIERS[TIERS.len() - 1].keep_ms;

/// A history on disk.
#[derive(Debug)]
pub struct Database {
    connection: Connection,
    /// Which file it is.
    inode: Option<u64>,
}

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// A newer gpumon has changed the tables.
    #[error(
        "{FILE} was written by a newer gpumon (its schema is {found}, this program knows {}): update gpumon, or name \
         another directory",
        schema::VERSION
    )]
    Newer {
        /// The version of its tables.
        found: i64,
    },
    /// It is a database of something else.
    #[error("{FILE} is a database of another program: name another directory")]
    Foreign,
    /// The directory cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The file cannot be created, or is a link.
    #[error("{FILE} cannot be opened: {0}")]
    File(io::Error),
    /// What SQLite says.
    #[error("{}", describe(.0))]
    Sqlite(#[from] rusqlite::Error),
}

impl DatabaseError {
    /// Whether the file is damaged, or was none of SQLite's.
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

/// Which file is the database of a folder now.
pub(crate) fn inode(folder: &Path) -> Option<u64> {
    fs::metadata(folder.join(FILE)).ok().map(|file| file.ino())
}

/// Returns the path of the database in a folder, without links: SQLite follows none.
fn path_in(folder: &Path) -> Result<PathBuf, DatabaseError> {
    Ok(fs::canonicalize(folder)
        .map_err(DatabaseError::File)?
        .join(FILE))
}

/// A path as SQLite takes it with options.
fn uri(path: &Path, options: &str) -> String {
    let bytes = path.as_os_str().as_bytes().iter();
    let escaped = bytes.fold(String::new(), |mut all, byte| {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                all.push(char::from(*byte));
            }
            // Writing to a string cannot fail.
            _ => drop(write!(all, "%{byte:02X}")),
        }
        all
    });
    format!("file:{escaped}?{options}")
}

/// Cause and cure, as far as SQLite tells.
fn describe(error: &rusqlite::Error) -> String {
    // The memory that its readers share is a file, too.
    let has_no_room = error
        .sqlite_error()
        .is_some_and(|error| error.extended_code == SQLITE_IOERR_SHMSIZE);
    let known = match error.sqlite_error_code() {
        _ if has_no_room => "the disk is full: free some space",
        Some(ErrorCode::DiskFull) => "the disk is full: free some space",
        Some(ErrorCode::ReadOnly) => "it is read-only: allow writing to it",
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            "it cannot be opened: check owner and permissions"
        }
        Some(ErrorCode::SystemIoFailure) => "the disk does not work as it should",
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program has locked it"
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => "it is damaged",
        _ => return error.to_string(),
    };
    format!("{known} ({error})")
}

impl Database {
    /// Opens the one in a folder to write to it; makes it where there is none.
    ///
    /// # Errors
    /// Where that fails, or it is not of this version.
    pub fn open(folder: &Path) -> Result<Self, DatabaseError> {
        // The file names users and their processes; what SQLite creates beside it gets the same
        // mode.
        drop(
            Folder::create(folder, Owner::Own)?
                .open_file(FILE)
                .map_err(DatabaseError::File)?,
        );
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(path_in(folder)?, flags | OpenFlags::SQLITE_OPEN_NOFOLLOW)?;
        connection.busy_timeout(Duration::from_secs(5))?;
        let database = Self {
            connection,
            inode: inode(folder),
        };
        database.check()?;
        // A file that is there is not written to before it has been read: one that is damaged is
        // kept as it was.
        if database
            .connection
            .pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))?
            == 0
        {
            // Pages are 8 KiB since rows are about 1 KiB: less is left over at the end of each.
            database.set("page_size", 8192)?;
            database.set("auto_vacuum", 2)?;
        }
        database.set("journal_mode", "wal")?;
        // Whatever kills the program loses nothing; a power failure may lose what came since the
        // last checkpoint.
        database.set("synchronous", "normal")?;
        database.set("cache_size", -256)?;
        database.set("wal_autocheckpoint", 128)?;
        database.set("journal_size_limit", 2 << 20)?;
        schema::migrate(&database.connection)?;
        Ok(database)
    }

    /// Opens the one in a folder to read it.
    ///
    /// # Errors
    /// As [`Self::open`]; also where there is none.
    pub fn open_to_read(folder: &Path) -> Result<Self, DatabaseError> {
        let path = path_in(folder)?;
        let opened = Self::open_uri(folder, &uri(&path, "mode=ro"));
        // Of a database in WAL mode, SQLite makes files beside it even to read it, which a disk
        // that is full or read-only refuses. One that was closed has all in itself, and nobody can
        // change it there.
        let is_refused = |error: &DatabaseError| {
            let DatabaseError::Sqlite(error) = error else {
                return false;
            };
            let code = error.sqlite_error_code();
            matches!(code, Some(ErrorCode::CannotOpen | ErrorCode::DiskFull))
                || matches!(code, Some(ErrorCode::ReadOnly | ErrorCode::SystemIoFailure))
        };
        let is_closed =
            || fs::metadata(folder.join(format!("{FILE}-wal"))).map_or(true, |wal| wal.len() == 0);
        match opened {
            Err(error) if is_refused(&error) && is_closed() => {
                Self::open_uri(folder, &uri(&path, "immutable=1")).map_err(|_| error)
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
            inode: inode(folder),
        };
        database.set("cache_size", -1024)?;
        database.check()?;
        Ok(database)
    }

    /// Which file it is, while it is there.
    pub(crate) fn inode(&self) -> Option<u64> {
        self.inode
    }

    /// Whether its tables are those that this program knows.
    fn check(&self) -> Result<(), DatabaseError> {
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

    fn set(&self, name: &str, value: impl rusqlite::ToSql) -> Result<(), rusqlite::Error> {
        self.connection
            .pragma_update_and_check(None, name, value, |_| Ok(()))
            .or_else(|error| match error {
                // Some say nothing.
                rusqlite::Error::QueryReturnedNoRows => Ok(()),
                error => Err(error),
            })
    }

    /// Whether every page of the file is as it should be. It reads all of them.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check_integrity(&self) -> Result<(), DatabaseError> {
        let found: String = self
            .connection
            .pragma_query_value(None, "integrity_check", |row| row.get(0))?;
        if found == "ok" {
            return Ok(());
        }
        let corrupt = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
        Err(rusqlite::Error::SqliteFailure(corrupt, Some(found)).into())
    }
}
