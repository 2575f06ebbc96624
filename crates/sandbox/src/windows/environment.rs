//! An environment as Windows hands it to a process.

/// Variables as one block: `name=value` and a NUL for each, in the order that Windows keeps them in,
/// and one more NUL at the end.
pub fn block(variables: impl IntoIterator<Item = (Vec<u16>, Vec<u16>)>) -> Vec<u16> {
    let mut variables: Vec<(Vec<u16>, Vec<u16>)> = variables.into_iter().collect();
    variables.sort_by_cached_key(|(name, _)| String::from_utf16_lossy(name).to_uppercase());
    let mut block = Vec::new();
    for (name, value) in variables {
        block.extend(name);
        block.push(u16::from(b'='));
        block.extend(value);
        block.push(0);
    }
    if block.is_empty() {
        // An empty block ends in two as well.
        block.push(0);
    }
    block.push(0);
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> String {
        let wide = |text: &str| text.encode_utf16().collect::<Vec<u16>>();
        let variables = variables.iter().map(|(name, value)| (wide(name), wide(value)));
        String::from_utf16(&block(variables)).unwrap()
    }

    #[test]
    fn names_are_in_order_whatever_their_case() {
        assert_eq!(of(&[("b", "2"), ("C", ""), ("A", "1=1")]), "A=1=1\0b=2\0C=\0\0");
        assert_eq!(of(&[]), "\0\0");
    }
}
