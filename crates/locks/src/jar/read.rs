//! Reads class files.

use std::fmt;
use std::io::{Cursor, Read};

use noak::reader::Class;
use noak::reader::attributes::{Code, RawInstruction};
use noak::reader::cpool::ConstantPool;

use super::flow::{self, is_eval};
use super::{Call, Jar, JarScript, is_lock_class, site};

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
/// Fails if the bytes are not a jar, or if a class with scripts cannot be read.
pub fn scripts(jar: &[u8]) -> Result<Vec<JarScript>, JarError> {
    read(jar).map(|jar| jar.scripts)
}

/// Reads a jar.
///
/// # Errors
/// Fails if the bytes are not a jar, or if a class of a lock or with scripts cannot be read.
pub fn read(bytes: &[u8]) -> Result<Jar, JarError> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(JarError::NotAJar)?;
    let mut names: Vec<String> =
        archive.file_names().flatten().map(String::from).filter(|name| is_class(name)).collect();
    names.sort();
    let mut jar = Jar::default();
    let mut bytes = Vec::new();
    for name in names {
        bytes.clear();
        let unpacked =
            archive.by_name(&name).map_err(Into::into).and_then(|mut file| file.read_to_end(&mut bytes));
        if let Err(error) = unpacked {
            return Err(JarError::File { name, error });
        }
        let class = class_name(name.trim_end_matches(".class"));
        let is_lock = is_lock_class(&class);
        if (is_lock || memchr::memmem::find(&bytes, CALL).is_some())
            && let Err(error) = read_class(&bytes, is_lock, &mut jar)
        {
            return Err(JarError::Class { name, error });
        }
        jar.classes.insert(class);
    }
    Ok(jar)
}

/// Returns the name of a class without Redisson's package, which may have been moved into another: `RedissonReadLock`,
/// `renewal.LockTask`.
fn class_name(path: &str) -> String {
    let start = path.rfind(PACKAGE).map_or(0, |at| at + PACKAGE.len());
    path[start..].replace('/', ".")
}

const PACKAGE: &str = "org/redisson/";

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
    let mut jar = Jar::default();
    read_class(bytes, false, &mut jar)?;
    scripts.append(&mut jar.scripts);
    Ok(())
}

/// Adds the scripts of a class file and, if `is_lock`, what its methods use.
pub(super) fn read_class(bytes: &[u8], is_lock: bool, jar: &mut Jar) -> Result<(), noak::error::DecodeError> {
    let class = Class::new(bytes)?;
    let pool = class.pool();
    let path = class_name(&pool.retrieve(class.this_class())?.name.display().to_string());
    let scripts = &mut jar.scripts;
    for method in class.methods() {
        let method = method?;
        let Some(code) = method.attributes().find_attribute::<Code>(pool)? else { continue };
        let name = pool.retrieve(method.name())?.display().to_string();
        let uses = uses(&code, pool)?;
        if is_lock {
            jar.uses.entry(site(&path, &name)).or_default().extend_from_slice(&uses);
        }
        // In the class of a lock, a text is a script if it is sent as one, whatever it says.
        let is_sent =
            |call: &Option<Call>| is_lock && call.as_ref().is_some_and(|call| is_eval(&call.method));
        let texts = flow::texts_of(&code, pool)?.into_iter();
        for (text, call) in texts.filter(|(text, call)| is_script(text) || is_sent(call)) {
            let same = |script: &&JarScript| script.class == path && script.method == name;
            let index = scripts.iter().rev().take_while(same).count();
            scripts.push(JarScript {
                class: path.clone(),
                method: name.clone(),
                index,
                text,
                call,
                uses: uses.clone(),
            });
        }
    }
    Ok(())
}

/// Returns the fields and methods that a method uses.
fn uses(code: &Code, pool: &ConstantPool) -> Result<Vec<String>, noak::error::DecodeError> {
    let mut uses = Vec::new();
    for instruction in code.raw_instructions() {
        let name = match instruction?.1 {
            RawInstruction::GetStatic { index } => pool.retrieve(index)?.name_and_type.name,
            RawInstruction::InvokeVirtual { index } => pool.retrieve(index)?.name_and_type.name,
            _ => continue,
        };
        uses.push(name.display().to_string());
    }
    Ok(uses)
}

fn is_script(text: &str) -> bool {
    text.contains("redis.call") || text.contains("redis.pcall")
}
