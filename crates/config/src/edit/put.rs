//! Puts a value into a document, the way a person would have written it.

use super::EditError;
use crate::check::dotted;
use toml_edit::{DocumentMut, InlineTable, Item, Table, TableLike, Value};

/// Sets a value. An old one gives its place and its comment to the new one; a new one goes to the end
/// of its table, and tables that are not there are made with a header of their own.
pub(super) fn put(
    document: &mut DocumentMut,
    path: &[String],
    value: Value,
) -> Result<(), EditError> {
    let Some((key, tables)) = path.split_last() else { return Ok(()) };
    let was_empty = document.as_table().is_empty();
    let shape = || EditError::Shape { key: dotted(path) };

    let mut table: &mut dyn TableLike = document.as_table_mut();
    let mut inline = false;
    for name in tables {
        if !table.contains_key(name) {
            table.insert(name, if inline { inline_table() } else { hidden_table() });
        }
        let item = table.get_mut(name).ok_or_else(shape)?;
        inline = item.is_inline_table();
        table = item.as_table_like_mut().ok_or_else(shape)?;
    }
    if table.contains_key(key) {
        let old = table.get_mut(key).and_then(Item::as_value_mut).ok_or_else(shape)?;
        // The comment at the end of a line belongs to the decoration of its value.
        let decoration = old.decor().clone();
        *old = value;
        *old.decor_mut() = decoration;
    } else {
        let mut value = value;
        if inline
            && let Some(last) = table.iter_mut().last().and_then(|(_, item)| item.as_value_mut())
        {
            // The blank before the closing brace belongs to the last value, whoever that is.
            let blank = last.decor().suffix().cloned().unwrap_or_default();
            last.decor_mut().set_suffix("");
            value.decor_mut().set_prefix(" ");
            value.decor_mut().set_suffix(blank);
        }
        table.insert(key, Item::Value(value));
    }
    if was_empty {
        keep_comments_first(document);
    }
    Ok(())
}

/// A table that needs no header as long as there are only tables in it.
fn hidden_table() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

fn inline_table() -> Item {
    Item::Value(Value::InlineTable(InlineTable::new()))
}

/// In a file of nothing but comments they come after everything; a person would have written below
/// them.
fn keep_comments_first(document: &mut DocumentMut) {
    let comments = document.trailing().as_str().unwrap_or_default().to_owned();
    if comments.trim().is_empty() {
        return;
    }
    document.set_trailing("");
    let comments = if comments.ends_with('\n') { comments } else { format!("{comments}\n") };
    let first = document.as_table().iter().next().map(|(key, _)| key.to_owned());
    let Some(first) = first else { return };
    // The first header is that of the first table that shows one.
    let mut item = document.as_table_mut().get_mut(&first);
    while let Some(Item::Table(table)) = item {
        let below = table.iter().next().map(|(key, item)| (key.to_owned(), item.is_table()));
        match below {
            Some((key, true)) => item = table.get_mut(&key),
            _ => {
                table.decor_mut().set_prefix(format!("{comments}\n"));
                return;
            }
        }
    }
    if let Some(mut key) = document.as_table_mut().key_mut(&first) {
        key.leaf_decor_mut().set_prefix(comments);
    }
}
