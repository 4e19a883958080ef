//! Lines of redis.conf, from files, from standard input and from the arguments of the process, read as redis-server reads
//! them.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::drop_in;
use redlatch_core::glob;
use redlatch_core::node::Config;
use redlatch_core::num::quote;
use redlatch_core::version::Version;
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

/// Why the lines of redis.conf are not accepted.
#[derive(Debug)]
pub(super) enum Refused {
    /// A file cannot be read.
    Unreadable(PathBuf, std::io::Error),
    Line {
        /// The file, or what else has the line.
        source: String,
        number: usize,
        line: String,
        why: String,
    },
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refused::Unreadable(path, error) => f.write_str(&cannot_read(path, error)),
            Refused::Line { source, line, why, .. } if source.is_empty() => {
                write!(f, "--{}: {why}", line.split(' ').next().unwrap_or_default())
            }
            Refused::Line { source, number, why, .. } => write!(f, "{source}:{number}: {why}"),
        }
    }
}

impl Refused {
    /// Returns what a real server of this release prints.
    pub fn as_server(&self, version: Version) -> String {
        match self {
            Refused::Unreadable(path, error) => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                let why = drop_in::without_number(error);
                format!("# Fatal error, can't open config file '{}': {why}", path.display())
            }
            Refused::Line { number, line, why, .. } => format!(
                "{}\nReading the configuration file, at line {number}\n>>> '{line}'\n{why}",
                drop_in::fatal_config(version)
            ),
        }
    }
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
    /// Applies the lines of a configuration file, if one is given, of standard input, if the arguments say so, and of the
    /// arguments.
    ///
    /// # Errors
    /// If something cannot be read, or a line is refused.
    pub fn read_all(&mut self, config_file: Option<&Path>, arguments: &Arguments) -> Result<(), Refused> {
        if let Some(path) = config_file {
            self.read(path)?;
        }
        if arguments.reads_stdin {
            self.read_text("standard input", &read_stdin()?)?;
        }
        arguments.directives.iter().try_for_each(|directive| self.read_text("", &as_line(directive)))
    }

    /// Does the same as redis-server, which joins all lines before it reads them, and counts them so.
    ///
    /// # Errors
    /// If something cannot be read, or a line is refused.
    pub fn read_joined(&mut self, config_file: Option<&Path>, arguments: &Arguments) -> Result<(), Refused> {
        let mut text = match config_file {
            Some(path) => read_file(path)?,
            None => Vec::new(),
        };
        if arguments.reads_stdin {
            text.push(b'\n');
            text.extend(read_stdin()?);
        }
        if !arguments.directives.is_empty() {
            text.push(b'\n');
        }
        for directive in &arguments.directives {
            text.extend(as_line(directive));
            text.push(b'\n');
        }
        self.read_text("", &text)
    }

    /// Applies the lines of a file.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is refused.
    pub fn read(&mut self, path: &Path) -> Result<(), Refused> {
        self.read_text(&path.display().to_string(), &read_file(path)?)
    }

    fn read_text(&mut self, source: &str, text: &[u8]) -> Result<(), Refused> {
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let refused = |why: String| Refused::Line {
                source: source.to_owned(),
                number: index + 1,
                line: String::from_utf8_lossy(line.trim_ascii()).into_owned(),
                why,
            };
            let words = Config::parse_line(line).map_err(|why| refused(why.to_string()))?;
            match words {
                None => {}
                Some((name, values)) if name == "include" => {
                    let paths = self.included(&values).map_err(refused)?;
                    self.depth += 1;
                    let outcome = paths.iter().try_for_each(|path| self.read(path));
                    self.depth -= 1;
                    outcome?;
                }
                Some((name, values)) => (self.apply)(&name, &values).map_err(refused)?,
            }
        }
        Ok(())
    }

    /// Returns the files that a line includes.
    fn included(&self, values: &[String]) -> Result<Vec<PathBuf>, String> {
        match values {
            [_] if self.depth == MAX_DEPTH => {
                Err(format!("files include one another more than {MAX_DEPTH} times"))
            }
            [path] => Ok(matching_files(Path::new(path))),
            _ => Err("wrong number of arguments".to_owned()),
        }
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, Refused> {
    std::fs::read(path).map_err(|error| Refused::Unreadable(path.to_owned(), error))
}

fn read_stdin() -> Result<Vec<u8>, Refused> {
    let mut text = Vec::new();
    match std::io::stdin().read_to_end(&mut text) {
        Ok(_) => Ok(text),
        Err(error) => Err(Refused::Unreadable("standard input".into(), error)),
    }
}

/// Returns a line of the arguments as redis-server writes it: its values are quoted.
fn as_line((name, values): &Directive) -> Vec<u8> {
    let mut line = name.clone().into_bytes();
    for value in values {
        line.push(b' ');
        quote(value.as_bytes(), &mut line);
    }
    line
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
