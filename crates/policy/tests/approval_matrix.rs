//! The page that shows the whole table is the table.

use sandgate_policy::approval_matrix;
use std::path::Path;

/// Set to write the page anew instead of comparing it.
const BLESS: &str = "SANDGATE_BLESS";

#[test]
fn the_page_is_what_the_table_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/approval-matrix.md");
    let made = approval_matrix();
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(&page, &made).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&page).unwrap_or_default().replace("\r\n", "\n");
    let differs = made.lines().zip(written.lines()).position(|(made, written)| made != written);
    assert!(
        made == written,
        "docs/approval-matrix.md is not what the table in crates/policy/src/requirement/table.rs \
         says (first difference in line {}). If the table is right, write the page anew and read \
         what changed:\n  cargo xtask docs",
        differs.map_or_else(|| "after the last".to_owned(), |line| (line + 1).to_string())
    );
}
