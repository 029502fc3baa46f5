//! The grammar of label selectors, with the messages of apimachinery's `labels.Parse`.

use super::{Operator, Requirement};

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Open,
    Close,
    Comma,
    Not,
    Equal,
    DoubleEqual,
    NotEqual,
    Greater,
    Less,
    In,
    NotIn,
    Word(String),
    End,
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::Open => "(",
            Self::Close => ")",
            Self::Comma => ",",
            Self::Not => "!",
            Self::Equal => "=",
            Self::DoubleEqual => "==",
            Self::NotEqual => "!=",
            Self::Greater => ">",
            Self::Less => "<",
            Self::In => "in",
            Self::NotIn => "notin",
            Self::Word(word) => word,
            Self::End => "",
        }
    }

    /// The token where a value stands: `in` and `notin` are ordinary words there.
    fn as_value(&self) -> Self {
        match self {
            Self::In | Self::NotIn => Self::Word(self.text().to_owned()),
            other => other.clone(),
        }
    }
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(&c) = chars.peek() {
        if matches!(c, ' ' | '\t' | '\r' | '\n') {
            chars.next();
            continue;
        }
        if !is_special(c) {
            let mut word = String::new();
            while let Some(&c) = chars.peek() {
                if is_special(c) || matches!(c, ' ' | '\t' | '\r' | '\n') {
                    break;
                }
                word.push(c);
                chars.next();
            }
            tokens.push(match word.as_str() {
                "in" => Token::In,
                "notin" => Token::NotIn,
                _ => Token::Word(word),
            });
            continue;
        }
        chars.next();
        let followed_by_equal = chars.peek() == Some(&'=');
        tokens.push(match c {
            '(' => Token::Open,
            ')' => Token::Close,
            ',' => Token::Comma,
            '>' => Token::Greater,
            '<' => Token::Less,
            '=' if followed_by_equal => Token::DoubleEqual,
            '=' => Token::Equal,
            _ if followed_by_equal => Token::NotEqual,
            _ => Token::Not,
        });
        if matches!(tokens.last(), Some(Token::DoubleEqual | Token::NotEqual)) {
            chars.next();
        }
    }
    tokens.push(Token::End);
    tokens
}

fn is_special(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let mut token = self.next().as_value();
        let negated = token == Token::Not;
        if negated {
            token = self.next().as_value();
        }
        let Token::Word(key) = token else {
            return Err(format!("found '{}', expected: identifier", token.text()));
        };
        validate_key(&key)?;
        let bare = |operator| Ok(Requirement { key: key.clone(), operator, values: Vec::new() });
        if negated {
            return bare(Operator::DoesNotExist);
        }
        if matches!(self.peek(), Token::End | Token::Comma) {
            return bare(Operator::Exists);
        }
        let token = self.next();
        let (operator, mut values) = match token {
            Token::In => (Operator::In, self.values()?),
            Token::NotIn => (Operator::NotIn, self.values()?),
            Token::Equal | Token::DoubleEqual => (Operator::In, vec![self.exact_value()?]),
            Token::NotEqual => (Operator::NotIn, vec![self.exact_value()?]),
            Token::Greater => (Operator::GreaterThan, vec![self.exact_value()?]),
            Token::Less => (Operator::LessThan, vec![self.exact_value()?]),
            other => {
                return Err(format!(
                    "found '{}', expected: in, notin, =, ==, !=, gt, lt",
                    other.text()
                ));
            }
        };
        for value in &values {
            if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
                value.parse::<i64>().map_err(|_| {
                    format!("values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer")
                })?;
            }
            validate_value(&key, value)?;
        }
        values.sort_unstable();
        values.dedup();
        Ok(Requirement { key, operator, values })
    }

    fn exact_value(&mut self) -> Result<String, String> {
        match self.peek().as_value() {
            Token::End | Token::Comma => Ok(String::new()),
            Token::Word(word) => {
                self.next();
                Ok(word)
            }
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    fn values(&mut self) -> Result<Vec<String>, String> {
        let open = self.next();
        if open != Token::Open {
            return Err(format!("found '{}' expected: '('", open.text()));
        }
        let mut values = Vec::new();
        let mut after_value = false;
        loop {
            match self.next().as_value() {
                Token::Word(word) if !after_value => {
                    values.push(word);
                    after_value = true;
                }
                Token::Comma => {
                    if !after_value {
                        values.push(String::new());
                    }
                    after_value = false;
                }
                Token::Close => {
                    if !after_value {
                        values.push(String::new());
                    }
                    return Ok(values);
                }
                other if after_value => {
                    return Err(format!("found '{}', expected: ',' or ')'", other.text()));
                }
                other => {
                    return Err(format!(
                        "found '{}', expected: ',', ')' or identifier",
                        other.text()
                    ));
                }
            }
        }
    }
}

pub(super) fn selector(text: &str) -> Result<Vec<Requirement>, String> {
    let mut parser = Parser { tokens: tokens(text), at: 0 };
    let mut requirements = Vec::new();
    loop {
        match parser.peek().as_value() {
            Token::Word(_) | Token::Not => {}
            Token::End => break,
            other => {
                return Err(format!(
                    "found '{}', expected: !, identifier, or 'end of string'",
                    other.text()
                ));
            }
        }
        let requirement = parser
            .requirement()
            .map_err(|error| format!("unable to parse requirement: {error}"))?;
        requirements.push(requirement);
        match parser.next() {
            Token::End => break,
            Token::Comma => match parser.peek().as_value() {
                Token::Word(_) | Token::Not => {}
                other => {
                    return Err(format!(
                        "found '{}', expected: identifier after ','",
                        other.text()
                    ));
                }
            },
            other => {
                return Err(format!("found '{}', expected: ',' or 'end of string'", other.text()));
            }
        }
    }
    // As apimachinery does, so that one meaning has one text.
    requirements.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(requirements)
}

fn validate_key(key: &str) -> Result<(), String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let valid_name = !name.is_empty() && name.len() <= 63 && is_label_text(name);
    let valid_prefix = prefix.is_none_or(|prefix| {
        !prefix.is_empty()
            && prefix.len() <= 253
            && prefix.split('.').all(|part| {
                !part.is_empty()
                    && !part.starts_with('-')
                    && !part.ends_with('-')
                    && part
                        .bytes()
                        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            })
    });
    if valid_name && valid_prefix {
        return Ok(());
    }
    Err(format!(
        "key: Invalid value: {key:?}: name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
    ))
}

fn validate_value(key: &str, value: &str) -> Result<(), String> {
    if value.is_empty() || (value.len() <= 63 && is_label_text(value)) {
        return Ok(());
    }
    Err(format!(
        "values[0][{key}]: Invalid value: {value:?}: a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    ))
}

fn is_label_text(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    text.bytes().all(inner) && edge(text.as_bytes().first()) && edge(text.as_bytes().last())
}
