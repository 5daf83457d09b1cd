//! JSON documents. What stands in them is documented in docs/cli.md.

use peermemd::dbus::client::Snapshot;
use serde::Serialize;

/// Grows when a key changes its meaning or goes away, not when one is added.
pub const SCHEMA: u32 = 1;

/// The document of a whole node.
#[derive(Debug, Serialize)]
pub struct Node<'a> {
    /// `daemon`, or `local` when this program looked for itself.
    pub source: &'static str,
    #[serde(flatten)]
    pub snapshot: &'a Snapshot,
}

#[derive(Serialize)]
struct Document<'a, T> {
    schema: u32,
    #[serde(flatten)]
    body: &'a T,
}

/// One document with a line end.
pub fn render<T: Serialize>(body: &T, pretty: bool) -> String {
    let document = Document { schema: SCHEMA, body };
    let text = if pretty {
        serde_json::to_string_pretty(&document)
    } else {
        serde_json::to_string(&document)
    };
    // Fails for maps whose keys are not strings, and there are none in our documents.
    text.unwrap_or_else(|_| unreachable!("documents have string keys")) + "\n"
}
