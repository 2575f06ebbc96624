//! Records that are too long, made shorter: what is left out is named, measured and hashed.

use super::line::{SEAL_BYTES, sha256};
use super::record::Record;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// No line of the log is longer, so that one call cannot fill a disk by its arguments alone.
pub const MAX_LINE_BYTES: usize = 64 << 10;

/// The same before it has its hash and its line end.
pub(super) const MAX_UNSEALED_BYTES: usize = MAX_LINE_BYTES - SEAL_BYTES - 1;

/// A part of a record that was made shorter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cut {
    /// Which part, as a JSON pointer into the record.
    pub field: String,
    /// How many bytes the text had, or the list as JSON.
    pub bytes: u64,
    /// How many items the list had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<u64>,
    /// The SHA-256 of those bytes, in hexadecimal.
    pub sha256: String,
}

/// How many bytes of a text and how many items of a list are kept. The first that fits is taken. The
/// names of our own cases are shorter than the last, so that they stay whole.
const LIMITS: [(usize, usize); 6] =
    [(16 << 10, 1000), (4 << 10, 250), (1 << 10, 60), (256, 15), (64, 4), (32, 1)];

/// Makes a line from a record and the parts that were cut, with less and less of the record until it
/// fits.
pub(super) fn until_it_fits(
    record: &Record,
    mut make: impl FnMut(&Value, &[Cut]) -> Result<Vec<u8>, serde_json::Error>,
) -> Result<Vec<u8>, serde_json::Error> {
    let whole = serde_json::to_value(record)?;
    let mut line = Vec::new();
    for limits in LIMITS {
        let mut cuts = Vec::new();
        let shorter = shortened(&whole, &mut String::new(), limits, &mut cuts);
        line = make(&shorter, &cuts)?;
        if line.len() <= MAX_UNSEALED_BYTES {
            // Only now: what is too long is long to hash as well.
            cuts.iter_mut().for_each(|cut| cut.measure(&whole));
            line = make(&shorter, &cuts)?;
            break;
        }
    }
    Ok(line)
}

impl Cut {
    /// A cut that has not been measured, with figures that take as much room as the real ones.
    fn at(field: &str, items: Option<usize>) -> Self {
        let items = items.map(|items| items as u64);
        Self { field: field.to_owned(), bytes: u64::MAX, items, sha256: "0".repeat(64) }
    }

    fn measure(&mut self, whole: &Value) {
        let json;
        let bytes = match whole.pointer(&self.field) {
            Some(Value::String(text)) => text.as_bytes(),
            other => {
                json = serde_json::to_vec(&other).unwrap_or_default();
                &json
            }
        };
        self.bytes = bytes.len() as u64;
        self.sha256 = sha256(bytes);
    }
}

/// As much of a value as may be kept.
fn shortened(
    value: &Value,
    field: &mut String,
    limits: (usize, usize),
    cuts: &mut Vec<Cut>,
) -> Value {
    let (most_bytes, most_items) = limits;
    match value {
        Value::String(text) if text.len() > most_bytes => {
            cuts.push(Cut::at(field, None));
            Value::from(&text[..text.floor_char_boundary(most_bytes)])
        }
        Value::Array(items) => {
            if items.len() > most_items {
                cuts.push(Cut::at(field, Some(items.len())));
            }
            let kept = items.iter().take(most_items).enumerate().map(|(index, item)| {
                within(field, &index.to_string(), |field| shortened(item, field, limits, cuts))
            });
            kept.collect()
        }
        Value::Object(fields) => {
            let kept = fields.iter().map(|(name, part)| {
                let part = within(field, name, |field| shortened(part, field, limits, cuts));
                (name.clone(), part)
            });
            Value::Object(kept.collect())
        }
        other => other.clone(),
    }
}

/// Does something one step further down.
fn within<T>(field: &mut String, step: &str, act: impl FnOnce(&mut String) -> T) -> T {
    let length = field.len();
    field.push('/');
    field.push_str(step);
    let done = act(field);
    field.truncate(length);
    done
}

#[cfg(test)]
mod tests {
    use super::super::record::CallAsked;
    use super::*;
    use sandgate_protocol::{CallId, SandboxPermissions};

    fn asked(argv: Vec<String>) -> Record {
        Record::CallAsked(CallAsked {
            call_id: CallId::new("c"),
            front_end: "run".to_owned(),
            tool: "shell".to_owned(),
            argv,
            cwd: "/".to_owned(),
            sandbox_permissions: SandboxPermissions::UseDefault,
            justification: None,
            agent: None,
        })
    }

    fn fitted(record: &Record) -> (Value, Vec<Cut>) {
        let mut last = None;
        let line = until_it_fits(record, |record, cuts| {
            last = Some((record.clone(), cuts.to_vec()));
            serde_json::to_vec(&(record, cuts))
        });
        assert!(line.unwrap().len() <= MAX_LINE_BYTES);
        last.unwrap()
    }

    #[test]
    fn only_the_long_text_is_cut() {
        let long = "é".repeat(100_000);
        let (record, cuts) = fitted(&asked(vec!["echo".to_owned(), long.clone()]));
        assert_eq!(cuts.len(), 1);
        assert_eq!((cuts[0].field.as_str(), cuts[0].bytes), ("/argv/1", 200_000));
        assert_eq!(cuts[0].sha256, sha256(long.as_bytes()));
        assert_eq!(record["argv"][0], "echo");
        let kept = record["argv"][1].as_str().unwrap();
        assert!(long.starts_with(kept) && kept.len() >= 10_000, "{}", kept.len());
    }

    #[test]
    fn a_long_list_keeps_its_beginning() {
        let (record, cuts) = fitted(&asked(vec!["word".to_owned(); 50_000]));
        assert_eq!((cuts[0].field.as_str(), cuts[0].items), ("/argv", Some(50_000)));
        assert_eq!(record["argv"].as_array().unwrap().len(), 1000);
    }

    #[test]
    fn text_that_grows_in_json_fits_as_well() {
        fitted(&asked(vec!["\u{1}".repeat(5_000); 500]));
    }
}
