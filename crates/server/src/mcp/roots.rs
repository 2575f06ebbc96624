//! The directories that a client works in.

// The roots of clients are on their way out of the protocol, and are what clients have now.
#![expect(deprecated, reason = "clients still say where they work by their roots")]

use rmcp::model::{InputRequest, ListRootsRequest, ListRootsResult};
use rmcp::{Peer, RoleServer};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// How long a client may take to say them.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many of them are looked at.
const MOST: usize = 100;

/// Asks for them, in the older generation. None if there are none, or the client does not say.
pub(super) async fn ask(peer: &Peer<RoleServer>) -> Option<PathBuf> {
    let asked = tokio::time::timeout(PATIENCE, peer.list_roots()).await;
    first(asked.ok()?.ok()?).await
}

/// The same question, for a call that the client makes again.
pub(super) fn request() -> InputRequest {
    InputRequest::ListRoots(ListRootsRequest::default())
}

/// What a client said to that.
pub(super) async fn read(said: Option<&Value>) -> Option<PathBuf> {
    first(serde_json::from_value(said?.clone()).ok()?).await
}

/// The first of them that is a directory here.
async fn first(roots: ListRootsResult) -> Option<PathBuf> {
    let look = move || {
        let roots = roots.roots.into_iter().take(MOST);
        roots.filter_map(|root| directory(&root.uri)).find(|path| path.is_dir())
    };
    tokio::task::spawn_blocking(look).await.ok().flatten()
}

/// The directory that an address names, if it is one of this machine.
fn directory(uri: &str) -> Option<PathBuf> {
    let uri = url::Url::parse(uri).ok().filter(|uri| uri.scheme() == "file")?;
    uri.to_file_path().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::Root;

    /// spec MCPS.6: Of the client's roots the first counts that is a directory of this machine.
    #[tokio::test]
    async fn the_first_directory_counts() {
        let here = tempfile::tempdir().unwrap();
        let named = here.path().join("a b");
        std::fs::create_dir(&named).unwrap();
        std::fs::write(here.path().join("file"), "").unwrap();
        let uri = |name: &str| format!("file://{}/{name}", here.path().display());
        let roots = |uris: &[String]| ListRootsResult::new(uris.iter().map(Root::new).collect());
        let other = "https://example.com/".to_owned();
        let all = [other.clone(), uri("none"), uri("file"), uri("a%20b"), uri("")];
        assert_eq!(first(roots(&all)).await, Some(named));
        assert_eq!(
            first(roots(&[other, "file://elsewhere/tmp".to_owned(), "x".to_owned()])).await,
            None
        );
        assert_eq!(read(Some(&serde_json::json!({ "roots": "none" }))).await, None);
    }
}
