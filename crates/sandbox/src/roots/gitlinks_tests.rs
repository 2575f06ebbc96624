use super::*;
use proptest::prelude::*;

/// An index of a version with these entries, as git writes it.
fn index(version: u32, entries: &[(&str, u32)], hash: usize) -> Vec<u8> {
    let mut bytes = [b"DIRC".as_slice(), &version.to_be_bytes()].concat();
    bytes.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
    let mut before = "";
    for (name, mode) in entries {
        let start = bytes.len();
        bytes.extend([0; 24]);
        bytes.extend(mode.to_be_bytes());
        bytes.extend(vec![0; 12 + hash]);
        bytes.extend(u16::try_from(name.len().min(0xfff)).unwrap().to_be_bytes());
        if version == 4 {
            let same = before.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
            bytes.extend(shortest(before.len() - same));
            bytes.extend(&name.as_bytes()[same..]);
            bytes.push(0);
        } else {
            bytes.extend(name.as_bytes());
            bytes.resize(start + ((bytes.len() - start) / 8 + 1) * 8, 0);
        }
        before = name;
    }
    bytes
}

/// A number in as many bytes as it needs.
fn shortest(mut value: usize) -> Vec<u8> {
    let mut bytes = vec![u8::try_from(value & 0x7f).unwrap()];
    while value > 0x7f {
        value = (value >> 7) - 1;
        bytes.insert(0, 0x80 | u8::try_from(value & 0x7f).unwrap());
    }
    bytes
}

fn extension(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap();
    [name.as_slice(), &length.to_be_bytes(), data].concat()
}

/// What one reading finds.
fn parsed(bytes: &[u8], hash: usize) -> Option<Links> {
    let mut found = Links::default();
    parse(bytes, hash, &mut found).map(|()| found)
}

fn paths<const N: usize>(paths: [&str; N]) -> BTreeSet<PathBuf> {
    paths.into_iter().map(PathBuf::from).collect()
}

/// What is known of the repositories in `/ws` when its index holds this.
fn known(index: &[u8]) -> Gitlinks {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("index"), index).unwrap();
    gitlinks(directory.path(), Path::new("/ws"))
}

#[test]
fn links_to_commits_are_found_and_nothing_else() {
    let entries = [("a", 0o100_644), ("deep/sub", GITLINK), ("link", 0o120_000), ("z", GITLINK)];
    let found = parsed(&index(2, &entries, 20), 20).unwrap();
    assert_eq!(found, Links { links: paths(["deep/sub", "z"]), ..Links::default() });
    assert_eq!(parsed(&index(2, &entries, 20)[..100], 20), None, "cut short");
    assert_eq!(parsed(b"DIRC", 20), None);
}

#[test]
fn no_path_leads_out_of_the_work_tree() {
    let entries = [("../out", GITLINK), ("/etc", GITLINK), ("in", GITLINK)];
    assert_eq!(known(&index(2, &entries, 20)).places, paths(["/ws/in"]));
}

/// As many as there are, wherever they share their beginnings, and beside entries of a kind that there is not.
#[test]
fn no_link_is_dropped() {
    let deep = "d/".repeat(1500);
    let names: Vec<String> = (0..MOST + 700).map(|number| format!("{deep}{number:05}/s")).collect();
    let mut entries: Vec<_> = names.iter().map(|name| (name.as_str(), GITLINK)).collect();
    entries.insert(0, ("a", 0));
    let found = known(&index(4, &entries, 20));
    assert_eq!((found.places.len(), found.crowded.len(), found.doubt), (MOST, 700, None));
    let names: Vec<String> = (0..2 * MOST + 2).map(|number| format!("{number:05}/s")).collect();
    let entries: Vec<_> = names.iter().map(|name| (name.as_str(), GITLINK)).collect();
    assert!(known(&index(2, &entries, 20)).doubt.is_some(), "there may be others");
}

#[test]
fn an_index_that_is_not_understood_leaves_doubts() {
    let whole = index(2, &[("sub", GITLINK)], 20);
    assert_eq!(known(&whole).doubt, None);
    assert!(known(&whole[..60]).doubt.is_some(), "cut short");
    assert!(known(&index(5, &[("sub", GITLINK)], 20)).doubt.is_some(), "of a version to come");
    assert_eq!(known(b"").doubt, None, "git does not take it for one");
    let directory = tempfile::tempdir().unwrap();
    let large = std::fs::File::create(directory.path().join("index")).unwrap();
    large.set_len(LARGEST + 1).unwrap();
    assert!(gitlinks(directory.path(), Path::new("/ws")).doubt.is_some(), "too large");
}

#[test]
fn links_are_found_in_the_index_that_another_is_split_from() {
    let directory = tempfile::tempdir().unwrap();
    let mut split = index(2, &[("own", GITLINK)], 20);
    split.extend(extension(b"TREE", b"whatever"));
    split.extend(extension(b"link", &[&[0xab; 20][..], b"bitmaps"].concat()));
    split.extend([0; 20]);
    std::fs::write(directory.path().join("index"), split).unwrap();
    let rest = directory.path().join(format!("sharedindex.{}", "ab".repeat(20)));
    std::fs::write(rest, index(2, &[("sub", GITLINK)], 20)).unwrap();
    let found = gitlinks(directory.path(), Path::new("/ws"));
    assert_eq!(found, Gitlinks { places: paths(["/ws/own", "/ws/sub"]), ..Gitlinks::default() });
}

/// Git believes the length; who believes the NUL sees another place than git.
#[test]
fn the_length_of_a_shortened_path_counts() {
    let mut bytes = index(4, &[("sub/decoy", GITLINK)], 20);
    bytes[12 + STAT + 20 + 1] = 3;
    assert_eq!(parsed(&bytes, 20).unwrap().links, paths(["sub"]));
}

/// A path; some are so long that their length is not written down.
fn name() -> impl Strategy<Value = String> {
    let long = ("[a-c]{1,4}", 4085_usize..4100).prop_map(|(start, more)| start + &"x".repeat(more));
    prop_oneof![6 => "[a-c/]{1,12}", 1 => long]
}

proptest! {
    #[test]
    fn what_git_writes_is_read(
        names in prop::collection::btree_set(name(), 0..20),
        modes in prop::collection::vec(prop::sample::select(vec![0o100_644, 0o120_000, GITLINK]), 20),
        version in 2_u32..=4,
        hash in prop::sample::select(vec![20_usize, 32]),
    ) {
        let entries: Vec<(&str, u32)> = names.iter().map(String::as_str).zip(modes).collect();
        let found = parsed(&index(version, &entries, hash), hash).unwrap();
        let links = entries.iter().filter(|(name, mode)| *mode == GITLINK && name.len() <= LONGEST);
        let links: BTreeSet<PathBuf> = links.map(|(name, _)| PathBuf::from(name)).collect();
        prop_assert_eq!(found, Links { links, ..Links::default() });
    }

    #[test]
    fn no_bytes_upset_it(
        tail in prop::collection::vec(any::<u8>(), 0..400), version in 0_u32..6, count in 0_u32..9,
    ) {
        let head = [b"DIRC", &version.to_be_bytes()[..], &count.to_be_bytes()].concat();
        let _ = readings(&[head, tail].concat(), &mut Links::default());
    }
}
