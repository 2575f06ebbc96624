//! Links from one page of the project to another that lead nowhere.

use super::{Finding, Tree};
use pulldown_cmark::{Event, Parser, Tag};

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".md")) {
        for (event, range) in Parser::new(text).into_offset_iter() {
            let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event
            else {
                continue;
            };
            let Some(target) = file_part(&dest_url) else { continue };
            if !resolve(path, &target).is_some_and(|target| tree.has(&target)) {
                let line = text[..range.start].matches('\n').count() + 1;
                let message =
                    format!("the link to `{target}` leads nowhere; name a file that exists");
                findings.push(Finding::new(path, line, message));
            }
        }
    }
    findings
}

/// The file that a link names; nothing when it leads out of the project or stays on its page.
fn file_part(link: &str) -> Option<String> {
    let link = link.split(['#', '?']).next().unwrap_or_default();
    let scheme = link.split('/').next().is_some_and(|first| first.contains(':'));
    if link.is_empty() || scheme || link.starts_with("//") {
        return None;
    }
    Some(link.replace("%20", " "))
}

/// The path from the root that a link on a page names; nothing when it leaves the project.
fn resolve(page: &str, target: &str) -> Option<String> {
    let (mut names, target) = match target.strip_prefix('/') {
        Some(from_root) => (Vec::new(), from_root),
        None => (page.split('/').collect(), target),
    };
    // The page's own name is not a directory.
    names.pop();
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop()?;
            }
            name => names.push(name),
        }
    }
    Some(names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(page: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("README.md", ""),
            ("docs/design/a b.md", ""),
            ("docs/design/guardian.md", page),
        ]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn links_to_what_exists_or_to_elsewhere_pass() {
        let page = "[a](../../README.md) [b](guardian.md#why) [c](/docs) [d](#here) [e](a%20b.md)\n\
                    <https://example.org/x> [f](mailto:a@b.c)\n\
                    `[g](gone.md)`\n\n```\n[h](gone.md)\n```\n";
        assert_eq!(found(page), Vec::<String>::new());
    }

    /// spec TIDY.31: A relative link in a Markdown file to a file or directory that does not exist
    /// is a finding.
    #[test]
    fn links_to_what_is_gone_are_found() {
        let page =
            "Read\n[this](gone.md), ![that](../x.png) and [those][r].\n\n[r]: ../../../y.md\n";
        let lines = found(page);
        assert_eq!(lines.len(), 3);
        assert_eq!(
            lines[0],
            "docs/design/guardian.md:2: the link to `gone.md` leads nowhere; name a file that exists"
        );
    }
}
