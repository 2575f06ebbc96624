//! Paths on the wire. JSON is text and paths need not be: what of one is not UTF-8 is replaced, because
//! a question or a result that cannot be written at all would be worse.

use serde::{Serialize as _, Serializer};
use std::path::{Path, PathBuf};

pub(crate) fn one<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    path.to_string_lossy().serialize(serializer)
}

pub(crate) fn maybe<S: Serializer>(
    path: &Option<PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    path.as_deref().map(Path::to_string_lossy).serialize(serializer)
}

pub(crate) fn all<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;

    #[derive(serde::Serialize)]
    struct Paths {
        #[serde(serialize_with = "one")]
        one: PathBuf,
        #[serde(serialize_with = "maybe")]
        maybe: Option<PathBuf>,
        #[serde(serialize_with = "all")]
        all: Vec<PathBuf>,
    }

    #[test]
    fn a_path_that_is_no_text_can_be_written() {
        let odd = PathBuf::from(OsString::from_vec(vec![b'a', 0xff]));
        let paths = Paths { one: odd.clone(), maybe: Some(odd.clone()), all: vec![odd] };
        let expected = "{\"one\":\"a\u{fffd}\",\"maybe\":\"a\u{fffd}\",\"all\":[\"a\u{fffd}\"]}";
        assert_eq!(serde_json::to_string(&paths).unwrap(), expected);
    }
}
