//! Follows the values in the byte code of a method, as far as it takes to see what a client sends with a script.
//!
//! The code is read once from start to end, as a compiler writes it: a loop's body counts once, of two branches both
//! count. A value is known by the expression that made it: `getLockName(threadId)`, `leaseTime`, `currentTimeMillis()`.
//! What only converts a value (`Long.valueOf`, `toMillis`, casts) and the object whose method is called are left out.

use std::collections::BTreeMap;
use std::rc::Rc;

use noak::error::DecodeError;
use noak::reader::attributes::{Code, LocalVariableTable, RawInstruction};
use noak::reader::cpool::value::NameAndType;
use noak::reader::cpool::{ConstantPool, Index, Item, MethodRef};

use super::Call;

/// The most bytes of an expression, and the most elements of a list. Longer ones are cut.
const LONGEST: usize = 100;
const MOST_ELEMENTS: usize = 32;
/// The most values that are kept for the targets of jumps.
const MOST_KEPT: usize = 4096;

/// Returns the texts that a method loads or sends as scripts, in order, each with the call that gets it, if one does. A
/// script that is put together when it is sent is an empty text.
///
/// # Errors
/// Fails if the code is malformed.
pub fn texts_of(code: &Code, pool: &ConstantPool) -> Result<Vec<(String, Option<Call>)>, DecodeError> {
    let mut flow = Flow {
        pool,
        stack: Vec::new(),
        locals: parameters(code, pool)?,
        lists: Vec::new(),
        kept: BTreeMap::new(),
        kept_values: 0,
        texts: Vec::new(),
    };
    let mut goes_on = true;
    for instruction in code.raw_instructions() {
        let (at, instruction) = instruction?;
        let at = i64::from(at.as_u32());
        let kept = flow.kept.remove(&at);
        if !goes_on {
            flow.stack = kept.unwrap_or_default();
        }
        goes_on = flow.step(at, instruction)?;
    }
    Ok(flow.texts)
}

/// Returns the names of a method's parameters, and of `this`, by slot.
fn parameters(code: &Code, pool: &ConstantPool) -> Result<BTreeMap<u16, Value>, DecodeError> {
    let mut names = BTreeMap::new();
    let Some(table) = code.attributes().find_attribute::<LocalVariableTable>(pool)? else { return Ok(names) };
    for local in table.locals() {
        let local = local?;
        if local.range().start.as_u32() == 0 {
            let name = pool.retrieve(local.name())?.display().to_string();
            names.insert(local.index(), Value::named(name));
        }
    }
    Ok(names)
}

/// A value on the stack or in a local variable.
#[derive(Clone)]
struct Value {
    is: Is,
    /// Whether it takes two slots of the stack: a long or a double.
    is_wide: bool,
}

#[derive(Clone)]
enum Is {
    /// A constant text: an index of [`Flow::texts`], and how it is shown.
    Text(usize, Rc<str>),
    /// An array or a list: an index of [`Flow::lists`].
    List(usize),
    /// The expression that made it.
    Named(Rc<str>),
}

impl Value {
    fn new(is: Is) -> Value {
        Value { is, is_wide: false }
    }

    fn named(name: impl AsRef<str>) -> Value {
        Value::new(Is::Named(cut(name.as_ref()).into()))
    }

    fn unknown() -> Value {
        Value::named("?")
    }

    fn wide(self, is_wide: bool) -> Value {
        Value { is_wide, ..self }
    }

    fn show(&self) -> String {
        match &self.is {
            Is::List(_) => "list".to_owned(),
            Is::Text(_, name) | Is::Named(name) => name.to_string(),
        }
    }
}

/// Returns the beginning of an expression.
fn cut(name: &str) -> &str {
    name.char_indices().nth(LONGEST).map_or(name, |(end, _)| &name[..end])
}

/// The state between two instructions.
struct Flow<'a, 'input> {
    pool: &'a ConstantPool<'input>,
    stack: Vec<Value>,
    locals: BTreeMap<u16, Value>,
    lists: Vec<Vec<Value>>,
    /// The stacks with which jumps arrive at later instructions.
    kept: BTreeMap<i64, Vec<Value>>,
    kept_values: usize,
    texts: Vec<(String, Option<Call>)>,
}

impl Flow<'_, '_> {
    fn push(&mut self, value: Value) {
        self.stack.push(value);
    }

    fn pop(&mut self) -> Value {
        self.stack.pop().unwrap_or_else(Value::unknown)
    }

    /// Replaces `count` values by one that is not known.
    fn merge(&mut self, count: usize, is_wide: bool) {
        (0..count).for_each(|_| drop(self.pop()));
        self.push(Value::unknown().wide(is_wide));
    }

    fn list(&mut self, elements: Vec<Value>) -> Value {
        self.lists.push(elements);
        Value::new(Is::List(self.lists.len() - 1))
    }

    /// Returns the elements of a list, or a value that stands for them all.
    fn elements(&self, value: &Value) -> Vec<Value> {
        match &value.is {
            Is::List(list) => self.lists[*list].clone(),
            _ => vec![Value::named(format!("*{}", value.show()))],
        }
    }

    fn extend(&mut self, list: &Value, elements: Vec<Value>) {
        if let Is::List(list) = list.is {
            self.lists[list].extend(elements);
            self.lists[list].truncate(MOST_ELEMENTS);
        }
    }

    fn load(&mut self, slot: u16, is_wide: bool) {
        let value = self.locals.get(&slot).cloned().unwrap_or_else(Value::unknown);
        self.push(value.wide(is_wide));
    }

    fn store(&mut self, slot: u16) {
        let value = self.pop();
        self.locals.insert(slot, value);
    }

    /// Removes values that together take this number of slots from the stack, the top one first.
    fn take_slots(&mut self, mut slots: usize) -> Vec<Value> {
        let mut taken = Vec::new();
        while slots > 0 {
            let value = self.pop();
            slots = slots.saturating_sub(1 + usize::from(value.is_wide));
            taken.push(value);
        }
        taken
    }

    /// Copies the top `slots` below the `below` slots under them.
    fn duplicate(&mut self, slots: usize, below: usize) {
        let top = self.take_slots(slots);
        let under = self.take_slots(below);
        self.stack.extend(top.iter().rev().cloned());
        self.stack.extend(under.into_iter().rev());
        self.stack.extend(top.into_iter().rev());
    }

    /// Keeps the stack for the target of a jump.
    fn jump(&mut self, at: i64, offset: impl Into<i64>) {
        let offset = offset.into();
        if offset > 0 && !self.stack.is_empty() && self.kept_values < MOST_KEPT {
            self.kept_values += self.stack.len();
            self.kept.insert(at + offset, self.stack.clone());
        }
    }

    fn branch(&mut self, at: i64, operands: usize, offset: i16) {
        (0..operands).for_each(|_| drop(self.pop()));
        self.jump(at, offset);
    }

    fn combine(&mut self, operator: char, is_wide: bool) {
        let (right, left) = (self.pop(), self.pop());
        self.push(Value::named(format!("{}{operator}{}", left.show(), right.show())).wide(is_wide));
    }

    fn constant(&mut self, index: Index<Item>) -> Result<(), DecodeError> {
        let value = match self.pool.get(index)? {
            Item::String(constant) => {
                let text = self.pool.retrieve(constant.string)?.display().to_string();
                let name = cut(&format!("{text:?}")).into();
                self.texts.push((text, None));
                Value::new(Is::Text(self.texts.len() - 1, name))
            }
            Item::Integer(constant) => Value::named(constant.value.to_string()),
            Item::Long(constant) => Value::named(constant.value.to_string()),
            _ => Value::unknown(),
        };
        self.push(value);
        Ok(())
    }

    /// Executes an instruction. Returns whether the next one can follow it.
    fn step(&mut self, at: i64, instruction: RawInstruction) -> Result<bool, DecodeError> {
        use RawInstruction::*;
        match instruction {
            Nop | IInc { .. } | IIncW { .. } | CheckCast { .. } => {}
            INeg | LNeg | FNeg | DNeg | I2B | I2C | I2F | I2S | F2I | D2L | L2D => {}
            I2L | I2D | F2D | F2L => {
                let value = self.pop();
                self.push(value.wide(true));
            }
            L2I | L2F | D2F | D2I => {
                let value = self.pop();
                self.push(value.wide(false));
            }
            AConstNull => self.push(Value::named("null")),
            IConstM1 => self.push(Value::named("-1")),
            IConst0 => self.push(Value::named("0")),
            IConst1 => self.push(Value::named("1")),
            IConst2 => self.push(Value::named("2")),
            IConst3 => self.push(Value::named("3")),
            IConst4 => self.push(Value::named("4")),
            IConst5 => self.push(Value::named("5")),
            LConst0 => self.push(Value::named("0").wide(true)),
            LConst1 => self.push(Value::named("1").wide(true)),
            FConst0 | FConst1 | FConst2 => self.push(Value::unknown()),
            DConst0 | DConst1 => self.push(Value::unknown().wide(true)),
            BIPush { value } => self.push(Value::named(value.to_string())),
            SIPush { value } => self.push(Value::named(value.to_string())),
            LdC { index } | LdCW { index } => self.constant(index)?,
            LdC2W { index } => {
                self.constant(index)?;
                let value = self.pop();
                self.push(value.wide(true));
            }
            ALoad { index } | ILoad { index } | FLoad { index } => self.load(index.into(), false),
            ALoadW { index } | ILoadW { index } | FLoadW { index } => self.load(index, false),
            LLoad { index } | DLoad { index } => self.load(index.into(), true),
            LLoadW { index } | DLoadW { index } => self.load(index, true),
            ALoad0 | ILoad0 | FLoad0 => self.load(0, false),
            ALoad1 | ILoad1 | FLoad1 => self.load(1, false),
            ALoad2 | ILoad2 | FLoad2 => self.load(2, false),
            ALoad3 | ILoad3 | FLoad3 => self.load(3, false),
            LLoad0 | DLoad0 => self.load(0, true),
            LLoad1 | DLoad1 => self.load(1, true),
            LLoad2 | DLoad2 => self.load(2, true),
            LLoad3 | DLoad3 => self.load(3, true),
            AStore { index } | IStore { index } | FStore { index } | LStore { index } | DStore { index } => {
                self.store(index.into())
            }
            AStoreW { index }
            | IStoreW { index }
            | FStoreW { index }
            | LStoreW { index }
            | DStoreW { index } => self.store(index),
            AStore0 | IStore0 | FStore0 | LStore0 | DStore0 => self.store(0),
            AStore1 | IStore1 | FStore1 | LStore1 | DStore1 => self.store(1),
            AStore2 | IStore2 | FStore2 | LStore2 | DStore2 => self.store(2),
            AStore3 | IStore3 | FStore3 | LStore3 | DStore3 => self.store(3),
            AALoad => {
                let (_, array) = (self.pop(), self.pop());
                self.push(Value::named(format!("{}[]", array.show())));
            }
            BALoad | CALoad | FALoad | IALoad | SALoad => self.merge(2, false),
            DALoad | LALoad => self.merge(2, true),
            AAStore => {
                let (element, _, array) = (self.pop(), self.pop(), self.pop());
                self.extend(&array, vec![element]);
            }
            BAStore | CAStore | DAStore | FAStore | IAStore | LAStore | SAStore => {
                (0..3).for_each(|_| drop(self.pop()));
            }
            ANewArray { .. } => {
                self.pop();
                let array = self.list(Vec::new());
                self.push(array);
            }
            NewArray { .. } => {
                self.pop();
                self.push(Value::named("new array"));
            }
            ArrayLength | InstanceOf { .. } => self.merge(1, false),
            MultiANewArray { dimensions, .. } => self.merge(dimensions.into(), false),
            New { index } => {
                let class = self.pool.retrieve(index)?.name.display().to_string();
                let value = match class.strip_prefix("java/util/") {
                    Some(list) if list.ends_with("List") => self.list(Vec::new()),
                    _ => Value::named(format!("new {}", class.rsplit('/').next().unwrap_or(&class))),
                };
                self.push(value);
            }
            IAdd => self.combine('+', false),
            LAdd => self.combine('+', true),
            ISub => self.combine('-', false),
            LSub => self.combine('-', true),
            IMul | IDiv | IRem | IAnd | IOr | IXor | IShL | IShR | IUShR => self.merge(2, false),
            LMul | LDiv | LRem | LAnd | LOr | LXor | LShL | LShR | LUShR => self.merge(2, true),
            FAdd | FSub | FMul | FDiv | FRem | FCmpG | FCmpL | DCmpG | DCmpL | LCmp => self.merge(2, false),
            DAdd | DSub | DMul | DDiv | DRem => self.merge(2, true),
            Pop => drop(self.pop()),
            Pop2 => drop(self.take_slots(2)),
            Dup => self.duplicate(1, 0),
            DupX1 => self.duplicate(1, 1),
            DupX2 => self.duplicate(1, 2),
            Dup2 => self.duplicate(2, 0),
            Dup2X1 => self.duplicate(2, 1),
            Dup2X2 => self.duplicate(2, 2),
            Swap => {
                let (top, under) = (self.pop(), self.pop());
                self.push(top);
                self.push(under);
            }
            MonitorEnter | MonitorExit => drop(self.pop()),
            GetField { index } => {
                self.pop();
                self.field(self.pool.retrieve(index)?.name_and_type);
            }
            GetStatic { index } => self.field(self.pool.retrieve(index)?.name_and_type),
            PutField { .. } => {
                self.pop();
                self.pop();
            }
            PutStatic { .. } => drop(self.pop()),
            InvokeVirtual { index } => {
                let method = self.pool.retrieve(index)?;
                self.invoke(true, method.name_and_type);
            }
            InvokeInterface { index, .. } => {
                let method = self.pool.retrieve(index)?;
                self.invoke(true, method.name_and_type);
            }
            InvokeSpecial { index } => self.invoke(true, method_of(self.pool, index)?),
            InvokeStatic { index } => self.invoke(false, method_of(self.pool, index)?),
            InvokeDynamic { index } => {
                let method = self.pool.retrieve(index)?;
                self.invoke(false, method.name_and_type);
            }
            IfEq { offset } | IfNe { offset } | IfLt { offset } | IfGe { offset } | IfGt { offset } => {
                self.branch(at, 1, offset)
            }
            IfLe { offset } | IfNull { offset } | IfNonNull { offset } => self.branch(at, 1, offset),
            IfACmpEq { offset } | IfACmpNe { offset } | IfICmpEq { offset } | IfICmpNe { offset } => {
                self.branch(at, 2, offset)
            }
            IfICmpLt { offset } | IfICmpGe { offset } | IfICmpGt { offset } | IfICmpLe { offset } => {
                self.branch(at, 2, offset)
            }
            Goto { offset } => {
                self.jump(at, offset);
                return Ok(false);
            }
            GotoW { offset } => {
                self.jump(at, offset);
                return Ok(false);
            }
            // Nothing that compilers write leaves values on the stack at a switch.
            TableSwitch(_) | LookupSwitch(_) | JSr { .. } | JSrW { .. } | Ret { .. } | RetW { .. } => {
                return Ok(false);
            }
            AReturn | IReturn | LReturn | FReturn | DReturn | Return | AThrow => return Ok(false),
        }
        Ok(true)
    }

    fn field(&mut self, field: NameAndType) {
        let is_wide = is_wide(field.descriptor.as_bytes());
        self.push(Value::named(field.name.display().to_string()).wide(is_wide));
    }

    fn invoke(&mut self, has_receiver: bool, method: NameAndType) {
        let (parameters, returned) = signature(method.descriptor.as_bytes());
        let mut args: Vec<Value> = (0..parameters).map(|_| self.pop()).collect();
        args.reverse();
        let receiver = has_receiver.then(|| self.pop());
        let name = method.name.display().to_string();
        self.note_scripts(&name, &args);
        let takes_collection = method.descriptor.as_bytes().ends_with(b"Ljava/util/Collection;)V")
            || method.descriptor.as_bytes().ends_with(b"Ljava/util/Collection;)Z");
        let result = self.result(&name, takes_collection, receiver, args);
        if returned != b"V" {
            self.push(result.wide(is_wide(returned)));
        }
    }

    /// Notes the call of a script: after its text come its keys and its arguments.
    fn note_scripts(&mut self, name: &str, args: &[Value]) {
        for (at, arg) in args.iter().enumerate() {
            let (keys, values) = (args.get(at + 1), args.get(at + 2));
            let is_sent = is_eval(name) && keys.is_some_and(|keys| matches!(keys.is, Is::List(_)));
            let text = match arg.is {
                Is::Text(text, _) => text,
                Is::Named(_) if is_sent => {
                    self.texts.push((String::new(), None));
                    self.texts.len() - 1
                }
                _ => continue,
            };
            // A text may also go to a log.
            let is_better = |known: &Call| is_eval(name) && !is_eval(&known.method);
            if self.texts[text].1.as_ref().is_none_or(is_better) {
                let show = |value: Option<&Value>| -> Vec<String> {
                    value.map_or(Vec::new(), |value| self.elements(value).iter().map(Value::show).collect())
                };
                let call = Call { method: name.to_owned(), keys: show(keys), args: show(values) };
                self.texts[text].1 = Some(call);
            }
        }
    }

    /// Returns the value that a method returns.
    fn result(
        &mut self,
        name: &str,
        takes_collection: bool,
        receiver: Option<Value>,
        args: Vec<Value>,
    ) -> Value {
        match (name, receiver, &args[..]) {
            ("asList", None, [array]) => array.clone(),
            ("singletonList" | "singleton", None, [element]) => self.list(vec![element.clone()]),
            ("emptyList", None, []) => self.list(Vec::new()),
            ("toArray", Some(list), _) => list,
            ("add", Some(list), [.., element]) => {
                self.extend(&list, vec![element.clone()]);
                Value::unknown()
            }
            // A list may also be created with a capacity.
            ("<init>" | "addAll", Some(list), [.., elements]) if takes_collection => {
                self.extend(&list, self.elements(elements));
                Value::unknown()
            }
            // Conversions of a value.
            ("valueOf" | "toMillis" | "encode", _, [value]) => value.clone(),
            ("longValue" | "intValue" | "toString" | "toMillis", Some(value), []) => value,
            _ => {
                let args: Vec<String> = args.iter().map(Value::show).collect();
                Value::named(format!("{name}({})", args.join(",")))
            }
        }
    }
}

/// Returns whether a method sends scripts: `evalWriteAsync`, `syncedEval`.
pub fn is_eval(method: &str) -> bool {
    method.contains("eval") || method.contains("Eval")
}

/// Returns whether values of a type take two slots.
fn is_wide(descriptor: &[u8]) -> bool {
    matches!(descriptor.first(), Some(b'J' | b'D'))
}

/// Splits the descriptor of a method, `(JLjava/lang/String;)V`, into the number of its parameters and the type that it
/// returns.
fn signature(descriptor: &[u8]) -> (usize, &[u8]) {
    let mut parameters = 0;
    let mut rest = descriptor.strip_prefix(b"(").unwrap_or(descriptor);
    while let Some((first, after)) = rest.split_first() {
        rest = match first {
            b')' => break,
            b'[' => {
                rest = after;
                continue;
            }
            b'L' => memchr::memchr(b';', after).map_or(&[], |end| &after[end + 1..]),
            _ => after,
        };
        parameters += 1;
    }
    (parameters, rest.strip_prefix(b")").unwrap_or(rest))
}

fn method_of<'input>(
    pool: &ConstantPool<'input>,
    index: Index<Item<'input>>,
) -> Result<NameAndType<'input>, DecodeError> {
    match pool.get(index)? {
        Item::InterfaceMethodRef(method) => pool.retrieve(method.name_and_type),
        _ => Ok(pool.retrieve(Index::<MethodRef>::new(index.as_u16())?)?.name_and_type),
    }
}
