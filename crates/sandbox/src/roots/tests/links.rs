//! Links in what is protected.

use super::*;
use crate::roots::links::{Left, Obeyed, links_in};

fn write(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "before").unwrap();
}

fn link(target: &str, path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink(target, path).unwrap();
}

/// spec SANDBOX.183: What a link in the person's settings, in `.codex`, `.agents`, or in what is obeyed in a home leads
/// to is protected like what lies there, however deep the link is and by however many others it leads.
#[test]
fn what_links_in_protected_directories_lead_to_is_protected() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    write(&ws.join("dotfiles/config.toml"));
    write(&ws.join("dotfiles/rules/deep/rule"));
    write(&ws.join("skills/one/SKILL.md"));
    write(&ws.join("shared/run.sh"));
    write(&ws.join("keys/config"));
    link("../ws/dotfiles/config.toml", &root.join("settings/config.toml"));
    link("../../ws/dotfiles/rules", &root.join("settings/a/rules"));
    link("../../settings/gone", &root.join("settings/a/gone"));
    link("../skills", &ws.join(".agents/skills"));
    link("../../shared/run.sh", &ws.join("skills/one/run.sh"));
    link("../later/prompts", &ws.join("sub/.codex/prompts"));
    link("../keys/config", &ws.join(".ssh/config"));
    let variables = env(&[("CODEX_HOME", &root.join("settings")), ("HOME", &ws)]);
    let layout = plain(&policy(vec![]), &ws, &variables).unwrap();
    let expected = [
        ("ws/dotfiles/config.toml", false),
        ("ws/dotfiles/rules/deep/rule", false),
        ("ws/dotfiles/other", true),
        ("ws/skills/one/SKILL.md", false),
        ("ws/shared/run.sh", false),
        ("ws/shared/other", true),
        ("ws/sub/later", false),
        ("ws/keys/config", false),
    ];
    check(&layout, &root, &expected);
    assert!(layout.pinned.contains(&ws.join("dotfiles")), "{:?}", layout.pinned);
    assert!(layout.absent.contains(&ws.join("sub/later")), "{:?}", layout.absent);
    assert_eq!(layout.unfit, None);
}

/// spec SANDBOX.184: What git runs or obeys by way of a link in a repository's own directory is protected: its
/// configuration, its hooks, each by itself or all together, and those of its submodules and worktrees.
#[test]
fn what_links_in_git_directories_lead_to_is_protected() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    for name in ["config", "hooks/pre-push", "scripts/check", "modules/m/config", "ours/HEAD"] {
        write(&ws.join("store").join(name));
    }
    write(&ws.join("common/config"));
    write(&ws.join("objects/00/11"));
    link("../../store/config", &ws.join("p/.git/config"));
    link("../../store/hooks", &ws.join("p/.git/hooks"));
    link("../scripts/check", &ws.join("store/hooks/pre-commit"));
    link("../../objects", &ws.join("p/.git/objects"));
    write(&ws.join("p/.git/modules/a/b/HEAD"));
    link("../../../../../store/modules/m/config", &ws.join("p/.git/modules/a/b/config"));
    link("../../../store/ours", &ws.join("p/.git/worktrees/w"));
    link("../../late/hooks", &ws.join("store/ours/hooks"));
    write(&ws.join("q/.git/HEAD"));
    fs::write(ws.join("q/.git/commondir"), "../../common\n").unwrap();
    link("refs/heads/main", &ws.join("r/.git/HEAD"));
    write(&ws.join("r/.git/refs/heads/main"));
    let layout = plain(&policy(vec![]), &ws, &env(&[])).unwrap();
    let expected = [
        ("ws/store/config", false),
        ("ws/store/hooks/new", false),
        ("ws/store/scripts/check", false),
        ("ws/store/scripts/other", true),
        ("ws/store/modules/m/config", false),
        ("ws/store/ours/config", false),
        ("ws/late", false),
        ("ws/common/config", false),
        ("ws/objects/00/11", true),
        ("ws/p/.git/objects", false),
    ];
    check(&layout, &root, &expected);
    let granted = with(&policy(vec![]), &ws, &[ws.join("r/.git")]).unwrap();
    check(&granted, &root, &[("ws/r/.git/refs/heads/main", true), ("ws/r/.git/config", false)]);
}

/// spec SANDBOX.185: Where a protected directory holds more than is searched for links, or cannot be searched, nothing
/// runs; a link to what a root lies in is told of.
#[test]
fn what_cannot_be_searched_for_links_is_refused() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    link("../..", &ws.join(".agents/all"));
    let layout = plain(&policy(vec![]), &ws, &env(&[])).unwrap();
    assert!(layout.notes().iter().any(|note| note.contains(".agents/all is a link to")));
    assert_eq!(layout.unfit, None);
    let none = BTreeSet::new();
    let few = &mut Left { directories: 1, entries: 9 };
    write(&ws.join(".codex/a/b"));
    let of = |name, left: &mut _| links_in(&ws.join(name), Obeyed::All, &none, left);
    assert!(of(".codex", few).is_err_and(|unread| unread.why.contains("too much")));
    if rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: root can read whatever there is");
        return;
    }
    fs::set_permissions(ws.join(".codex/a"), fs::Permissions::from_mode(0o300)).unwrap();
    let layout = plain(&policy(vec![]), &ws, &env(&[])).unwrap();
    let (place, why) = layout.unfit.unwrap();
    assert_eq!(place, ws);
    assert!(why.contains(".codex/a"), "{why}");
}

/// spec SANDBOX.231: Neither what a link in a protected directory leads to outside of the roots, nor hundreds of links that
/// lead nowhere, nor other users' links where temporary files are, keep a command from running or close what is this user's.
#[test]
fn links_that_others_make_keep_nobody_from_working() {
    let (_directory, root) = home();
    let (ws, tmp) = (root.join("ws"), root.join("tmp"));
    write(&root.join("far/deep/file"));
    link("../../ws/src", &root.join("far/deep/back"));
    fs::set_permissions(root.join("far/deep"), fs::Permissions::from_mode(0o300)).unwrap();
    link("../../far", &ws.join(".agents/far"));
    for number in 0..find::MOST_KEPT_FREE + 50 {
        link(&format!("../../nothing{number}"), &ws.join(format!("sub/.codex/{number}")));
        link(&format!("../../nothing{number}"), &tmp.join(format!("sub/.codex/{number}")));
    }
    fs::create_dir(ws.join("src")).unwrap();
    let variables = env(&[("TMPDIR", &tmp)]);
    let layout = plain(&policy(vec![]), &ws, &variables).unwrap();
    assert_eq!(layout.unfit, None);
    check(&layout, &root, &[("ws/src/file", true), ("ws/.codex", false), ("ws/file", true)]);
    assert!(layout.absent.len() <= find::MOST_KEPT_FREE, "{}", layout.absent.len());
    assert!(layout.absent.contains(&ws.join(".git")), "what is always kept free comes first");
    if !rustix::process::geteuid().is_root() {
        return;
    }
    link(&ws.join("src").to_string_lossy(), &tmp.join("other/.agents/src"));
    std::os::unix::fs::lchown(tmp.join("other/.agents/src"), Some(65534), None).unwrap();
    let layout = plain(&policy(vec![]), &ws, &variables).unwrap();
    check(&layout, &root, &[("ws/src/file", true)]);
    std::os::unix::fs::lchown(tmp.join("other/.agents/src"), Some(0), None).unwrap();
    let layout = plain(&policy(vec![]), &ws, &variables).unwrap();
    check(&layout, &root, &[("ws/src/file", false)]);
}

/// What links lead to is very much: the directories that it lies in are closed.
#[test]
fn so_many_links_close_what_they_lead_into() {
    let (_directory, root) = home();
    let ws = root.join("ws");
    for number in 0..1100 {
        write(&ws.join(format!("many/{number}")));
        link(&format!("../many/{number}"), &ws.join(format!(".agents/{number}")));
    }
    let layout = plain(&policy(vec![]), &ws, &env(&[])).unwrap();
    check(&layout, &root, &[("ws/many/7", false), ("ws/many/new", false), ("ws/file", true)]);
    assert!(layout.roots[0].read_only_subpaths.len() < 100);
}
