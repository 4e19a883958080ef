//! Tests of what is read from class files.

use super::read::read_class;
use super::{Jar, JarScript, class_scripts, site};

/// A class file under construction: a constant pool, and the code of one method.
#[derive(Default)]
struct ClassFile {
    pool: Vec<u8>,
    constants: u16,
    code: Vec<u8>,
}

impl ClassFile {
    fn constant(&mut self, tag: u8, parts: &[u16]) -> u16 {
        self.pool.push(tag);
        self.pool.extend(parts.iter().flat_map(|part| part.to_be_bytes()));
        self.constants += 1;
        self.constants
    }

    fn utf8(&mut self, text: &str) -> u16 {
        let index = self.constant(1, &[text.len() as u16]);
        self.pool.extend(text.as_bytes());
        index
    }

    fn named(&mut self, tag: u8, text: &str) -> u16 {
        let text = self.utf8(text);
        self.constant(tag, &[text])
    }

    /// Appends an instruction with the index of a constant.
    fn op(&mut self, opcode: u8, index: u16) {
        self.code.push(opcode);
        self.code.extend(index.to_be_bytes());
    }

    fn load(&mut self, text: &str) {
        let text = self.named(8, text);
        self.op(0x13, text);
    }

    fn call(&mut self, opcode: u8, name: &str, descriptor: &str) {
        let (class, name, descriptor) = (self.named(7, "X"), self.utf8(name), self.utf8(descriptor));
        let of = self.constant(12, &[name, descriptor]);
        let method = self.constant(10, &[class, of]);
        self.op(opcode, method);
    }

    /// Appends an array of texts and of a number, the result of two calls.
    fn array(&mut self, texts: &[&str]) {
        let class = self.named(7, "java/lang/Object");
        self.code.push(0x08);
        self.op(0xbd, class);
        for text in texts {
            self.code.extend([0x59, 0x03]);
            self.load(text);
            self.code.push(0x53);
        }
    }

    /// Returns the scripts of the class.
    fn scripts(self) -> Vec<JarScript> {
        let mut scripts = Vec::new();
        class_scripts(&self.file(), &mut scripts).expect("a class file");
        scripts
    }

    fn file(mut self) -> Vec<u8> {
        let (this, method, descriptor, code) = (
            self.named(7, "org/redisson/RedissonLock"),
            self.utf8("send"),
            self.utf8("()V"),
            self.utf8("Code"),
        );
        let mut file = vec![0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 52];
        file.extend((self.constants + 1).to_be_bytes());
        file.extend(&self.pool);
        file.extend(
            [0x21, this, this, 0, 0, 1, 1, method, descriptor, 1, code].map(u16::to_be_bytes).concat(),
        );
        file.extend((self.code.len() as u32 + 12).to_be_bytes());
        file.extend([0, 9, 0, 9]);
        file.extend((self.code.len() as u32).to_be_bytes());
        file.extend(&self.code);
        file.extend([0; 6]);
        file
    }
}

const SCRIPT: &str = "return redis.call('get', KEYS[1])";
const EVAL: &str = "(Ljava/lang/String;Ljava/util/List;[Ljava/lang/Object;)V";
const STATIC: u8 = 0xb8;
const VIRTUAL: u8 = 0xb6;

#[test]
fn the_arguments_of_a_call_are_found() {
    let mut class = ClassFile::default();
    class.code.push(0x2a);
    class.load(SCRIPT);
    class.array(&["a", "b"]);
    class.call(STATIC, "asList", "([Ljava/lang/Object;)Ljava/util/List;");
    class.array(&["c"]);
    // The array also gets a sum of longs, in an object.
    class.code.extend([0x59, 0x04]);
    class.call(STATIC, "currentTimeMillis", "()J");
    class.code.push(0x0a);
    class.code.push(0x61);
    class.call(STATIC, "valueOf", "(J)Ljava/lang/Long;");
    class.code.push(0x53);
    class.call(VIRTUAL, "evalWriteAsync", EVAL);
    class.code.push(0xb1);
    let scripts = class.scripts();
    let call = scripts[0].call.as_ref().expect("a call");
    assert_eq!((&*scripts[0].text, &*call.method), (SCRIPT, "evalWriteAsync"));
    assert_eq!(call.keys, ["\"a\"", "\"b\""]);
    assert_eq!(call.args, ["\"c\"", "currentTimeMillis()+1"]);
}

#[test]
fn a_branch_keeps_the_values_below_it() {
    let mut class = ClassFile::default();
    class.code.push(0x2a);
    class.load(SCRIPT);
    // b ? one() : other(): ifeq, goto.
    class.call(STATIC, "b", "()Z");
    class.op(0x99, 9);
    class.call(STATIC, "one", "()Ljava/util/List;");
    class.op(0xa7, 6);
    class.call(STATIC, "other", "()Ljava/util/List;");
    class.array(&[]);
    class.call(VIRTUAL, "eval", EVAL);
    class.code.push(0xb1);
    let scripts = class.scripts();
    let call = scripts[0].call.as_ref().expect("a call");
    assert_eq!((&call.keys[..], &call.args[..]), (&["*other()".to_owned()][..], &[][..]));
}

#[test]
fn code_that_no_compiler_writes_is_read_too() {
    let mut class = ClassFile::default();
    // Takes values that nobody put there, and copies them.
    class.code.extend([0x57, 0x58, 0x5b, 0x5e, 0x5f, 0x61, 0x53]);
    class.call(VIRTUAL, "eval", EVAL);
    class.load(SCRIPT);
    class.code.push(0xb1);
    assert_eq!(class.scripts()[0].call, None);
}

#[test]
fn a_site_is_named_by_what_people_wrote() {
    assert_eq!(site("RedissonLock$3", "run"), "RedissonLock.run");
    assert_eq!(site("RedissonLock$Inner", "run"), "RedissonLock$Inner.run");
    assert_eq!(site("RedissonLock", "lambda$unlockAsync$12"), "RedissonLock.unlockAsync");
}

#[test]
fn a_text_is_a_script_of_a_lock_if_it_is_sent_as_one() {
    let mut class = ClassFile::default();
    for script in [Some("return 1"), None] {
        class.code.push(0x2a);
        match script {
            Some(text) => class.load(text),
            None => class.call(STATIC, "makeScript", "()Ljava/lang/String;"),
        }
        class.array(&["a"]);
        class.array(&["b"]);
        class.call(VIRTUAL, "syncedEval", EVAL);
    }
    class.load("not sent");
    class.code.push(0xb1);
    let file = class.file();
    let mut jar = Jar::default();
    read_class(&file, true, &mut jar).expect("a class file");
    let texts: Vec<&str> = jar.scripts.iter().map(|script| &*script.text).collect();
    assert_eq!(texts, ["return 1", ""]);
    let mut scripts = Vec::new();
    class_scripts(&file, &mut scripts).expect("a class file");
    assert!(scripts.is_empty());
}
