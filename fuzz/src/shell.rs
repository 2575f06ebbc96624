//! A second look at what shells are given, much simpler than the parsers.

use sandgate_policy::command::{
    Connective, Redirection, RedirectionKind, Shape, SimpleCommand, Word,
};

/// Whether a shell makes something of the text while it runs: an expansion or a substitution that is not quoted
/// away. A text that takes more than quotes to tell (comments, here-documents, `$'…'`) counts as one that does not.
pub fn makes_something(text: &str) -> bool {
    if ["#", "<<", "$'", "$\""].iter().any(|hard| text.contains(hard)) {
        return false;
    }
    let mut rest = text.chars().peekable();
    let mut in_double = false;
    while let Some(c) = rest.next() {
        let next = rest.peek().copied();
        match c {
            '\\' => drop(rest.next()),
            '\'' if !in_double => drop(rest.find(|c| *c == '\'')),
            '"' => in_double = !in_double,
            '`' => return true,
            '$' if next.is_some_and(|c| c.is_ascii_alphanumeric() || "_({[*@?!$-".contains(c)) => {
                return true;
            }
            '<' | '>' if !in_double && next == Some('(') => return true,
            _ => {}
        }
    }
    false
}

/// Commands as a script again, in which every word is quoted; nothing where it holds what has more than one form.
pub fn written(commands: &[SimpleCommand]) -> Option<String> {
    let mut script = String::new();
    // Only inside of a group can anything else than the next command stand behind `&`.
    let in_group =
        |pair: &[SimpleCommand]| pair[0].left_running != (pair[1].connective == Connective::Beside);
    if commands.windows(2).any(in_group) {
        return None;
    }
    for (place, command) in commands.iter().enumerate() {
        script.push_str(match command.connective {
            Connective::First if place == 0 => "",
            Connective::First => return None,
            Connective::Then => "; ",
            Connective::And => " && ",
            Connective::Or => " || ",
            Connective::Pipe => " | ",
            Connective::PipeBoth => " |& ",
            Connective::Beside => " ",
        });
        let mut parts = Vec::new();
        for assignment in &command.assignments {
            parts.push(format!("{}={}", assignment.name, word(&assignment.value)?));
        }
        for one in &command.words {
            parts.push(word(one)?);
        }
        for redirection in &command.redirections {
            parts.push(redirected(redirection)?);
        }
        script.push_str(&parts.join(" "));
        if command.left_running {
            script.push_str(" &");
        }
    }
    Some(script)
}

fn word(word: &Word) -> Option<String> {
    match word.shape {
        Shape::Literal => Some(format!("'{}'", word.text.replace('\'', r"'\''"))),
        Shape::Pattern | Shape::Home => Some(word.text.clone()),
        Shape::Dynamic => None,
    }
}

fn redirected(redirection: &Redirection) -> Option<String> {
    let operator = match redirection.kind {
        RedirectionKind::Read => "<",
        RedirectionKind::Write => ">",
        RedirectionKind::Clobber => ">|",
        RedirectionKind::Append => ">>",
        RedirectionKind::ReadWrite => "<>",
        RedirectionKind::WriteBoth => "&>",
        RedirectionKind::AppendBoth => "&>>",
        RedirectionKind::Duplicate => ">&",
        RedirectionKind::HereDocument => return None,
        RedirectionKind::HereString => "<<<",
    };
    let target = match redirection.kind {
        RedirectionKind::Duplicate => redirection.target.text.clone(),
        _ => word(&redirection.target)?,
    };
    let descriptor = redirection.descriptor.map(|it| it.to_string()).unwrap_or_default();
    Some(format!("{descriptor}{operator}{target}"))
}
