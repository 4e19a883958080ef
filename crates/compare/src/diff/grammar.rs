//! A compact notation for the form of a command's arguments, and its expansion to random arguments.
//!
//! ```text
//! key                 an argument from the pool of that name (see `pools`)
//! COUNT               this keyword, in upper or lower case
//! key...              one to four arguments
//! #key                their number, then the arguments
//! ( a | b c )         one of these; `( a b )...` one to four times
//! [ a | b ]           one of these, or nothing
//! { a | b | c d }     any of these, in any order
//! =                   at the beginning: the command is never made malformed
//! ```

use super::pools::Pools;

/// A part of a form.
enum Node<'a> {
    Word(&'a str),
    Counted(&'a str),
    OneOf(Vec<Vec<Node<'a>>>),
    AnyOf(Vec<Vec<Node<'a>>>),
    Optional(Vec<Vec<Node<'a>>>),
    Repeated(Box<Node<'a>>),
}

/// Expands a form to random arguments.
pub fn expand(form: &str, pools: &mut Pools) -> Vec<Vec<u8>> {
    let mut tokens = form.trim_start_matches('=').split_ascii_whitespace();
    let mut words = Vec::new();
    for alternative in parse(&mut tokens).0 {
        for node in &alternative {
            emit(node, pools, &mut words);
        }
    }
    words
}

/// Parses the alternatives up to a closing bracket. Returns them and the bracket.
fn parse<'a>(tokens: &mut impl Iterator<Item = &'a str>) -> (Vec<Vec<Node<'a>>>, &'a str) {
    let mut alternatives = vec![Vec::new()];
    while let Some(token) = tokens.next() {
        let node = match token {
            "|" => {
                alternatives.push(Vec::new());
                continue;
            }
            "(" | "[" | "{" => {
                let (inner, close) = parse(tokens);
                let group = match token {
                    "(" => Node::OneOf(inner),
                    "[" => Node::Optional(inner),
                    _ => Node::AnyOf(inner),
                };
                if close.ends_with("...") { Node::Repeated(Box::new(group)) } else { group }
            }
            _ if token.starts_with([')', ']', '}']) => return (alternatives, token),
            _ => match (token.strip_prefix('#'), token.strip_suffix("...")) {
                (Some(name), _) => Node::Counted(name),
                (_, Some(name)) => Node::Repeated(Box::new(Node::Word(name))),
                _ => Node::Word(token),
            },
        };
        if let Some(last) = alternatives.last_mut() {
            last.push(node);
        }
    }
    (alternatives, "")
}

fn emit(node: &Node, pools: &mut Pools, words: &mut Vec<Vec<u8>>) {
    match node {
        Node::Word(word) => words.push(pools.word(word)),
        Node::Counted(name) => {
            let count = 1 + pools.rng.below(3);
            let said = if pools.rng.below(12) == 0 { pools.word("int") } else { count.to_string().into() };
            words.push(said);
            (0..count).for_each(|_| words.push(pools.word(name)));
        }
        Node::Repeated(inner) => {
            for _ in 0..=pools.rng.below(4).min(pools.rng.below(4)) {
                emit(inner, pools, words);
            }
        }
        Node::Optional(_) if pools.rng.below(2) == 0 => {}
        Node::OneOf(alternatives) | Node::Optional(alternatives) => {
            emit_alternative(&alternatives[pools.rng.below(alternatives.len())], pools, words);
        }
        Node::AnyOf(alternatives) => {
            for _ in 0..pools.rng.below(alternatives.len().min(3) + 1) {
                emit_alternative(&alternatives[pools.rng.below(alternatives.len())], pools, words);
            }
        }
    }
}

fn emit_alternative(nodes: &[Node], pools: &mut Pools, words: &mut Vec<Vec<u8>>) {
    nodes.iter().for_each(|node| emit(node, pools, words));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_gives_words_in_its_order() {
        let mut pools = Pools::new(1);
        for _ in 0..100 {
            let words = expand("key [ COUNT int ] ( A b | C )...", &mut pools);
            assert!(words.len() >= 2, "{words:?}");
        }
        let words = expand("{ NX | XX }", &mut pools);
        assert!(words.iter().all(|word| word.len() == 2));
    }
}
