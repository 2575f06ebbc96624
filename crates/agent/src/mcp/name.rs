//! The names of tools: the server's and the tool's, in the letters that providers take.

use sha2::{Digest as _, Sha256};

/// The longest name that every provider takes.
const LONGEST: usize = 64;

/// How many letters of the hash stand in a name that could not stay as it was.
const HASHED: usize = 8;

/// `server__tool`. Where that is not a name, or is not sure to be the only one that comes to it, a hash of
/// both stands at its end. It depends on nothing else, so it is the same in every session.
pub(super) fn tool_name(server: &str, tool: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name: String =
        format!("{server}__{tool}").chars().map(|c| if plain(c) { c } else { '_' }).collect();
    let is_itself = tool.chars().all(plain) && !tool.is_empty();
    // Where the server's name ends could be read in two ways.
    let is_clear = !server.contains("__") && !server.ends_with('_') && !tool.starts_with('_');
    if is_itself && is_clear && name.len() <= LONGEST {
        return name;
    }
    let mut hash = Sha256::new();
    hash.update(server.as_bytes());
    hash.update([0]);
    hash.update(tool.as_bytes());
    let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let kept = name.len().min(LONGEST - HASHED - 1);
    format!("{}_{}", &name[..kept], &hash[..HASHED])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_plain_name_stays_as_it_is() {
        assert_eq!(tool_name("docs", "search-all"), "docs__search-all");
    }

    /// spec MCP.9: Names are made of letters that every provider takes, and no two tools have the same.
    #[test]
    fn no_two_tools_come_to_one_name() {
        let long = "x".repeat(70);
        let tools = [
            ("a", "b__c"),
            ("a__b", "c"),
            ("a_", "b"),
            ("a", "_b"),
            ("a", "b c"),
            ("a", "b.c"),
            ("a", "b_c"),
            ("a", ""),
            ("a", "ä"),
            ("a", "ö"),
            ("a", &long),
            ("a", &long[1..]),
        ];
        let names: std::collections::BTreeSet<String> =
            tools.iter().map(|(server, tool)| tool_name(server, tool)).collect();
        assert_eq!(names.len(), tools.len(), "{names:?}");
    }

    proptest! {
        #[test]
        fn every_name_is_one_that_providers_take(server in "[a-zA-Z0-9_-]{1,64}", tool in any::<String>()) {
            let name = tool_name(&server, &tool);
            prop_assert!((1..=64).contains(&name.len()));
            prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'));
        }
    }
}
