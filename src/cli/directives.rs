//! Lines of redis.conf, from files, from standard input and from the arguments of the process, read as redis-server reads
//! them.

use std::io::Read;
use std::path::{Path, PathBuf};

use redlatch_core::glob;
use redlatch_core::node::Config;
use redlatch_core::wire::request::split_words;

/// How deeply files may include one another.
const MAX_DEPTH: usize = 16;

/// A line: the name of a setting in lower case, and its values.
pub(super) type Directive = (String, Vec<String>);

/// The arguments of the process, divided.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    /// Those of Redlatch itself, the program's name first.
    pub own: Vec<String>,
    pub directives: Vec<Directive>,
    /// Whether more lines come from standard input.
    pub reads_stdin: bool,
}

impl Arguments {
    /// Divides the arguments of the process. `is_directive` decides whether a name is that of a line of redis.conf.
    ///
    /// As in redis-server, an argument may hold a name together with its values, the argument after a lone name is a value
    /// whatever it looks like, and a `-` at the end stands for standard input.
    pub fn split(args: impl IntoIterator<Item = String>, is_directive: fn(&str) -> bool) -> Arguments {
        let mut found = Arguments::default();
        let mut args = args.into_iter().peekable();
        let (mut in_directive, mut awaits_value) = (false, false);
        while let Some(arg) = args.next() {
            let is_last = args.peek().is_none();
            if arg == "-" && is_last {
                found.reads_stdin = true;
                continue;
            }
            let option = arg.strip_prefix("--").filter(|_| !awaits_value).map(option_words);
            match option {
                Some(words) if is_directive(&words[0]) => {
                    let [name, values @ ..] = &words[..] else { continue };
                    let mut values = values.to_vec();
                    // A lone --save saves never.
                    let ends = args.peek().is_none_or(|next| next.starts_with("--"));
                    if values.is_empty() && name == "save" && ends {
                        values.push(String::new());
                    }
                    awaits_value = values.is_empty();
                    found.directives.push((name.clone(), values));
                    in_directive = true;
                }
                Some(words) if words.len() > 1 => {
                    found.own.push(format!("--{}={}", words[0], words[1..].join(" ")));
                    in_directive = false;
                }
                Some(_) => {
                    found.own.push(arg);
                    in_directive = false;
                }
                None if in_directive => {
                    found.directives.last_mut().into_iter().for_each(|(_, values)| values.push(arg.clone()));
                    awaits_value = false;
                }
                None => found.own.push(arg),
            }
        }
        found
    }
}

/// Returns the words of an option without its dashes; there is at least one, the name in lower case.
fn option_words(text: &str) -> Vec<String> {
    let words = split_words(text.as_bytes()).filter(|words| !words.is_empty());
    let Some(words) = words else { return vec![text.to_owned()] };
    let mut words: Vec<String> =
        words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    words[0].make_ascii_lowercase();
    words
}

/// Applies a line, given its name and values.
type Apply<'a> = dyn FnMut(&str, &[String]) -> Result<(), String> + 'a;

/// Reads configuration files, and what they include, line by line.
pub(super) struct Files<'a> {
    /// Applies a line.
    pub apply: &'a mut Apply<'a>,
    pub depth: usize,
}

impl Files<'_> {
    /// Applies the lines of a file.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is refused; the text names the line.
    pub fn read(&mut self, path: &Path) -> Result<(), String> {
        let text = std::fs::read(path).map_err(|error| cannot_read(path, &error))?;
        self.read_text(&path.display().to_string(), &text)
    }

    /// Applies the lines of standard input.
    ///
    /// # Errors
    /// If a line is refused.
    pub fn read_stdin(&mut self) -> Result<(), String> {
        let mut text = Vec::new();
        let read = std::io::stdin().read_to_end(&mut text);
        read.map_err(|error| format!("cannot read standard input: {error}"))?;
        self.read_text("standard input", &text)
    }

    fn read_text(&mut self, source: &str, text: &[u8]) -> Result<(), String> {
        for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let applied = match Config::parse_line(line) {
                Ok(None) => Ok(()),
                Ok(Some((name, values))) => self.apply(&name, &values),
                Err(why) => Err(why.to_string()),
            };
            applied.map_err(|why| format!("{source}:{}: {why}", number + 1))?;
        }
        Ok(())
    }

    /// Applies a line, which may include files.
    ///
    /// # Errors
    /// If it is refused.
    pub fn apply(&mut self, name: &str, values: &[String]) -> Result<(), String> {
        if name != "include" {
            return (self.apply)(name, values);
        }
        let [path] = values else { return Err("wrong number of arguments".to_owned()) };
        if self.depth == MAX_DEPTH {
            return Err(format!("files include one another more than {MAX_DEPTH} times"));
        }
        self.depth += 1;
        let outcome = matching_files(Path::new(path)).iter().try_for_each(|path| self.read(path));
        self.depth -= 1;
        outcome
    }
}

/// Returns the files that a path names, whose last part may be a pattern.
fn matching_files(path: &Path) -> Vec<PathBuf> {
    let pattern = path.file_name().map(|name| name.as_encoded_bytes()).unwrap_or_default();
    if !pattern.iter().any(|byte| b"*?[".contains(byte)) {
        return vec![path.to_owned()];
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| glob::matches(pattern, entry.file_name().as_encoded_bytes(), false))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// Explains why a configuration file cannot be read. A plain word was probably meant as a subcommand.
fn cannot_read(path: &Path, error: &std::io::Error) -> String {
    let shown = path.display();
    let is_word = path.extension().is_none() && path.components().count() == 1;
    if error.kind() != std::io::ErrorKind::NotFound || !is_word {
        return format!("cannot read {shown}: {error}");
    }
    let meant = super::nearest_subcommand(&shown.to_string());
    let hint =
        meant.map_or("--help lists the subcommands".to_owned(), |name| format!("did you mean '{name}'?"));
    format!("'{shown}' is neither a subcommand nor a configuration file: {hint}")
}
