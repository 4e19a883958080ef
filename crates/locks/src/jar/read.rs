//! Reads class files.

use std::fmt;
use std::io::{Cursor, Read};

use noak::reader::Class;
use noak::reader::attributes::{Code, RawInstruction};
use noak::reader::cpool::Item;

use super::JarScript;

/// Why a jar cannot be read.
#[derive(Debug)]
pub enum JarError {
    NotAJar(zip::result::ZipError),
    /// A file of the jar cannot be unpacked.
    File {
        name: String,
        error: std::io::Error,
    },
    /// A class file is malformed.
    Class {
        name: String,
        error: noak::error::DecodeError,
    },
}

impl fmt::Display for JarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JarError::NotAJar(error) => write!(f, "not a jar: {error}"),
            JarError::File { name, error } => write!(f, "{name}: {error}"),
            JarError::Class { name, error } => write!(f, "{name}: {error}"),
        }
    }
}

impl std::error::Error for JarError {}

/// Returns all scripts of a jar, in the order of their classes' names and then of their texts.
///
/// # Errors
/// Fails if the bytes are not a jar, or if any class in it cannot be read.
pub fn scripts(jar: &[u8]) -> Result<Vec<JarScript>, JarError> {
    let mut archive = zip::ZipArchive::new(Cursor::new(jar)).map_err(JarError::NotAJar)?;
    let mut names: Vec<String> =
        archive.file_names().flatten().map(String::from).filter(|name| is_class(name)).collect();
    names.sort();
    let mut scripts = Vec::new();
    let mut bytes = Vec::new();
    for name in names {
        bytes.clear();
        let unpacked =
            archive.by_name(&name).map_err(Into::into).and_then(|mut file| file.read_to_end(&mut bytes));
        if let Err(error) = unpacked {
            return Err(JarError::File { name, error });
        }
        if memchr::memmem::find(&bytes, CALL).is_some()
            && let Err(error) = class_scripts(&bytes, &mut scripts)
        {
            return Err(JarError::Class { name, error });
        }
    }
    Ok(scripts)
}

/// What every script contains.
const CALL: &[u8] = b"redis.";

/// A jar may contain the same class again for newer Java releases.
fn is_class(name: &str) -> bool {
    name.ends_with(".class") && !name.starts_with("META-INF/")
}

/// Appends the scripts of a class file.
///
/// # Errors
/// Fails if the bytes are not a class file.
pub fn class_scripts(bytes: &[u8], scripts: &mut Vec<JarScript>) -> Result<(), noak::error::DecodeError> {
    let class = Class::new(bytes)?;
    let pool = class.pool();
    let path = pool.retrieve(class.this_class())?.name.display().to_string();
    let path = path.strip_prefix("org/redisson/").unwrap_or(&path).replace('/', ".");
    for method in class.methods() {
        let method = method?;
        let Some(code) = method.attributes().find_attribute::<Code>(pool)? else { continue };
        let name = pool.retrieve(method.name())?.display().to_string();
        let mut texts = Vec::new();
        let mut uses = Vec::new();
        for instruction in code.raw_instructions() {
            let constant = match instruction?.1 {
                RawInstruction::LdC { index } | RawInstruction::LdCW { index } => pool.get(index)?,
                RawInstruction::GetStatic { index } => {
                    uses.push(pool.retrieve(index)?.name_and_type.name.display().to_string());
                    continue;
                }
                RawInstruction::InvokeVirtual { index } => {
                    uses.push(pool.retrieve(index)?.name_and_type.name.display().to_string());
                    continue;
                }
                _ => continue,
            };
            let Item::String(constant) = constant else { continue };
            let text = pool.retrieve(constant.string)?.display().to_string();
            if is_script(&text) {
                texts.push(text);
            }
        }
        for text in texts {
            let same = |script: &&JarScript| script.class == path && script.method == name;
            let index = scripts.iter().rev().take_while(same).count();
            scripts.push(JarScript {
                class: path.clone(),
                method: name.clone(),
                index,
                text,
                uses: uses.clone(),
            });
        }
    }
    Ok(())
}

fn is_script(text: &str) -> bool {
    text.contains("redis.call") || text.contains("redis.pcall")
}
