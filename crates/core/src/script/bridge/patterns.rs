//! Lua's patterns: `find`, `match`, `gmatch` and `gsub`, with the results and errors of Lua 5.1.
//!
//! Lua's own matcher may backtrack for ever, and nothing can interrupt it. This one counts its steps, and pauses like the
//! hook that counts instructions; so a time limit and SCRIPT KILL reach it. The frames here own nothing.

use std::ffi::{CStr, c_int};
use std::mem::MaybeUninit;
use std::ptr;

use memchr::memmem;
use mlua_sys::{self as ffi, lua_State};

use super::machine::{Shared, pause};

/// The most repetitions and captures of a pattern within which a match may be. Each takes native stack.
const MAX_DEPTH: usize = 2000;

/// The most captures of a pattern: LUA_MAXCAPTURES.
const MAX_CAPTURES: usize = 32;

const ESCAPE: u8 = b'%';

/// How many bytes that are only looked through count as a step.
const BYTES_PER_STEP: usize = 16;

#[derive(Clone, Copy)]
enum Extent {
    Unfinished,
    Position,
    Length(usize),
}

#[derive(Clone, Copy)]
struct Capture {
    start: usize,
    extent: Extent,
}

/// One use of a pattern. Offsets `s` are into the subject, `p` into the pattern. A pattern ends at its first NUL.
struct Matcher<'a> {
    state: *mut lua_State,
    shared: &'a Shared,
    subject: &'a [u8],
    pattern: &'a [u8],
    level: usize,
    depth: usize,
    captures: [Capture; MAX_CAPTURES],
}

/// Raises an error with a constant text.
///
/// # Safety
/// Called in a frame of Lua's own that owns nothing.
unsafe fn raise(state: *mut lua_State, text: &CStr) -> ! {
    // SAFETY: by the caller.
    unsafe { ffi::luaL_error(state, text.as_ptr()) };
    unreachable!("an error leaves this frame")
}

/// Returns the string argument at `index`.
///
/// # Safety
/// Called in a frame of Lua's own that owns nothing. The result lives as long as the argument stays where it is.
unsafe fn check_bytes<'a>(state: *mut lua_State, index: c_int) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: by the caller.
    unsafe {
        let start = ffi::luaL_checklstring(state, index, &mut len);
        std::slice::from_raw_parts(start.cast(), len)
    }
}

/// Returns the bytes of the string at `index`.
///
/// # Safety
/// As for [`check_bytes`]; the value is a string.
unsafe fn bytes<'a>(state: *mut lua_State, index: c_int) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: by the caller.
    unsafe {
        let start = ffi::lua_tolstring(state, index, &mut len);
        std::slice::from_raw_parts(start.cast(), len)
    }
}

/// # Safety
/// Called in a frame of Lua's own that owns nothing, with room for one value.
unsafe fn push_bytes(state: *mut lua_State, bytes: &[u8]) {
    // SAFETY: by the caller.
    unsafe { ffi::lua_pushlstring_(state, bytes.as_ptr().cast(), bytes.len()) };
}

fn is_in_class(c: u8, class: u8) -> bool {
    let is_in = match class.to_ascii_lowercase() {
        b'a' => c.is_ascii_alphabetic(),
        b'c' => c.is_ascii_control(),
        b'd' => c.is_ascii_digit(),
        b'l' => c.is_ascii_lowercase(),
        b'p' => c.is_ascii_punctuation(),
        b's' => matches!(c, b' ' | b'\t'..=b'\r'),
        b'u' => c.is_ascii_uppercase(),
        b'w' => c.is_ascii_alphanumeric(),
        b'x' => c.is_ascii_hexdigit(),
        b'z' => c == 0,
        _ => return class == c,
    };
    is_in == class.is_ascii_lowercase()
}

impl<'a> Matcher<'a> {
    /// # Safety
    /// `state` is a live state of a machine, and the strings live as long as the matcher.
    unsafe fn new(state: *mut lua_State, subject: &'a [u8], pattern: &'a [u8]) -> Matcher<'a> {
        // SAFETY: by the caller.
        let shared = unsafe { Shared::of(state) };
        let none = Capture { start: 0, extent: Extent::Unfinished };
        Matcher { state, shared, subject, pattern, level: 0, depth: 0, captures: [none; MAX_CAPTURES] }
    }

    /// Returns a byte of the pattern; 0 at its end.
    fn pattern_at(&self, p: usize) -> u8 {
        self.pattern.get(p).copied().unwrap_or(0)
    }

    /// Returns a byte of the subject; 0 at its end.
    fn subject_at(&self, s: usize) -> u8 {
        self.subject.get(s).copied().unwrap_or(0)
    }

    /// Counts steps, and pauses when there were enough.
    ///
    /// # Safety
    /// As for [`pause`].
    unsafe fn count(&self, steps: usize) {
        if self.shared.count_steps(steps) {
            // SAFETY: by the caller.
            unsafe { pause(self.state) };
        }
    }

    /// # Safety
    /// Called in a frame of Lua's own that owns nothing.
    unsafe fn class_end(&self, p: usize) -> usize {
        // SAFETY: by the caller.
        unsafe {
            match self.pattern_at(p) {
                ESCAPE if self.pattern_at(p + 1) == 0 => {
                    raise(self.state, c"malformed pattern (ends with '%%')")
                }
                ESCAPE => p + 2,
                b'[' => {
                    let mut end = if self.pattern_at(p + 1) == b'^' { p + 2 } else { p + 1 };
                    loop {
                        match self.pattern_at(end) {
                            0 => raise(self.state, c"malformed pattern (missing ']')"),
                            ESCAPE if self.pattern_at(end + 1) != 0 => end += 2,
                            _ => end += 1,
                        }
                        if self.pattern_at(end) == b']' {
                            self.count((end - p) / BYTES_PER_STEP);
                            return end + 1;
                        }
                    }
                }
                _ => p + 1,
            }
        }
    }

    /// Returns whether a byte is in the set from `p`, its bracket, to `end`, its closing bracket.
    fn is_in_set(&self, c: u8, mut p: usize, end: usize) -> bool {
        let is_negated = self.pattern_at(p + 1) == b'^';
        p += usize::from(is_negated) + 1;
        while p < end {
            let first = self.pattern_at(p);
            if first == ESCAPE {
                p += 1;
                if is_in_class(c, self.pattern_at(p)) {
                    return !is_negated;
                }
            } else if self.pattern_at(p + 1) == b'-' && p + 2 < end {
                p += 2;
                if (first..=self.pattern_at(p)).contains(&c) {
                    return !is_negated;
                }
            } else if first == c {
                return !is_negated;
            }
            p += 1;
        }
        is_negated
    }

    /// Returns whether the byte at `s`, if there is one, matches the single item from `p` to `end`.
    ///
    /// # Safety
    /// As for [`pause`].
    unsafe fn is_single_match(&self, s: usize, p: usize, end: usize) -> bool {
        let Some(&c) = self.subject.get(s) else { return false };
        match self.pattern_at(p) {
            b'.' => true,
            ESCAPE => is_in_class(c, self.pattern_at(p + 1)),
            b'[' => {
                // SAFETY: by the caller.
                unsafe { self.count((end - p) / BYTES_PER_STEP) };
                self.is_in_set(c, p, end - 1)
            }
            literal => literal == c,
        }
    }

    /// Matches `%b`.
    ///
    /// # Safety
    /// As for [`pause`].
    unsafe fn balance(&self, mut s: usize, p: usize) -> Option<usize> {
        let (open, close) = (self.pattern_at(p), self.pattern_at(p + 1));
        // SAFETY: by the caller.
        unsafe {
            if open == 0 || close == 0 {
                raise(self.state, c"unbalanced pattern");
            }
            if self.subject_at(s) != open {
                return None;
            }
            let mut depth = 1usize;
            loop {
                s += 1;
                let c = *self.subject.get(s)?;
                self.count(1);
                if c == close {
                    depth -= 1;
                    if depth == 0 {
                        return Some(s + 1);
                    }
                } else if c == open {
                    depth += 1;
                }
            }
        }
    }

    /// # Safety
    /// As for [`pause`].
    unsafe fn max_expand(&mut self, s: usize, p: usize, end: usize) -> Option<usize> {
        let mut count = 0;
        // SAFETY: by the caller.
        unsafe {
            while self.is_single_match(s + count, p, end) {
                self.count(1);
                count += 1;
            }
            loop {
                if let Some(found) = self.matches(s + count, end + 1) {
                    return Some(found);
                }
                count = count.checked_sub(1)?;
            }
        }
    }

    /// # Safety
    /// As for [`pause`].
    unsafe fn min_expand(&mut self, mut s: usize, p: usize, end: usize) -> Option<usize> {
        // SAFETY: by the caller.
        unsafe {
            loop {
                if let Some(found) = self.matches(s, end + 1) {
                    return Some(found);
                }
                if !self.is_single_match(s, p, end) {
                    return None;
                }
                s += 1;
            }
        }
    }

    /// # Safety
    /// As for [`pause`].
    unsafe fn start_capture(&mut self, s: usize, p: usize, extent: Extent) -> Option<usize> {
        // SAFETY: by the caller.
        unsafe {
            if self.level >= MAX_CAPTURES {
                raise(self.state, c"too many captures");
            }
            self.captures[self.level] = Capture { start: s, extent };
            self.level += 1;
            let found = self.matches(s, p);
            if found.is_none() {
                self.level -= 1;
            }
            found
        }
    }

    /// # Safety
    /// As for [`pause`].
    unsafe fn end_capture(&mut self, s: usize, p: usize) -> Option<usize> {
        let is_open = |capture: &Capture| matches!(capture.extent, Extent::Unfinished);
        // SAFETY: by the caller.
        unsafe {
            let Some(open) = self.captures[..self.level].iter().rposition(is_open) else {
                raise(self.state, c"invalid pattern capture")
            };
            self.captures[open].extent = Extent::Length(s - self.captures[open].start);
            let found = self.matches(s, p);
            if found.is_none() {
                self.captures[open].extent = Extent::Unfinished;
            }
            found
        }
    }

    /// Matches a back reference, `%1` to `%9`.
    ///
    /// # Safety
    /// As for [`pause`].
    unsafe fn reference(&self, s: usize, digit: u8) -> Option<usize> {
        let index = usize::from(digit).wrapping_sub(usize::from(b'1'));
        // SAFETY: by the caller.
        unsafe {
            match self.captures[..self.level].get(index) {
                None | Some(Capture { extent: Extent::Unfinished, .. }) => {
                    raise(self.state, c"invalid capture index")
                }
                // In C, the length of a position is a number that no subject is long enough for.
                Some(Capture { extent: Extent::Position, .. }) => None,
                Some(&Capture { start, extent: Extent::Length(len) }) => {
                    self.count(len / BYTES_PER_STEP);
                    self.subject[s..].starts_with(&self.subject[start..start + len]).then_some(s + len)
                }
            }
        }
    }

    /// Matches the pattern from `p` on at `s`. Returns where the match ends.
    ///
    /// # Safety
    /// As for [`pause`]: the script's native stack is running, and no frame on it owns anything.
    unsafe fn matches(&mut self, s: usize, p: usize) -> Option<usize> {
        // SAFETY: by the caller.
        unsafe {
            if self.depth >= MAX_DEPTH {
                raise(self.state, c"pattern too complex");
            }
            self.depth += 1;
            let found = self.matches_items(s, p);
            self.depth -= 1;
            found
        }
    }

    /// # Safety
    /// As for [`matches`](Self::matches).
    unsafe fn matches_items(&mut self, mut s: usize, mut p: usize) -> Option<usize> {
        // SAFETY: by the caller.
        unsafe {
            loop {
                self.count(1);
                match (self.pattern_at(p), self.pattern_at(p + 1)) {
                    (0, _) => return Some(s),
                    (b'(', b')') => return self.start_capture(s, p + 2, Extent::Position),
                    (b'(', _) => return self.start_capture(s, p + 1, Extent::Unfinished),
                    (b')', _) => return self.end_capture(s, p + 1),
                    (ESCAPE, b'b') => {
                        s = self.balance(s, p + 2)?;
                        p += 4;
                        continue;
                    }
                    (ESCAPE, b'f') => {
                        p += 2;
                        if self.pattern_at(p) != b'[' {
                            raise(self.state, c"missing '[' after '%%f' in pattern");
                        }
                        let end = self.class_end(p);
                        let before = if s == 0 { 0 } else { self.subject_at(s - 1) };
                        if self.is_in_set(before, p, end - 1)
                            || !self.is_in_set(self.subject_at(s), p, end - 1)
                        {
                            return None;
                        }
                        p = end;
                        continue;
                    }
                    (ESCAPE, digit @ b'0'..=b'9') => {
                        s = self.reference(s, digit)?;
                        p += 2;
                        continue;
                    }
                    (b'$', 0) => return (s == self.subject.len()).then_some(s),
                    _ => {}
                }
                let end = self.class_end(p);
                let is_match = self.is_single_match(s, p, end);
                match self.pattern_at(end) {
                    b'?' => {
                        if is_match && let Some(found) = self.matches(s + 1, end + 1) {
                            return Some(found);
                        }
                        p = end + 1;
                    }
                    b'*' => return self.max_expand(s, p, end),
                    b'+' if is_match => return self.max_expand(s + 1, p, end),
                    b'-' => return self.min_expand(s, p, end),
                    b'+' => return None,
                    _ if !is_match => return None,
                    _ => {
                        s += 1;
                        p = end;
                    }
                }
            }
        }
    }

    /// Begins a match at `s` with the pattern from `p` on.
    ///
    /// # Safety
    /// As for [`matches`](Self::matches).
    unsafe fn match_at(&mut self, s: usize, p: usize) -> Option<usize> {
        self.level = 0;
        // SAFETY: by the caller.
        unsafe { self.matches(s, p) }
    }

    /// Pushes capture number `index`; number 0 is the whole match if the pattern has no captures.
    ///
    /// # Safety
    /// Called in a frame of Lua's own that owns nothing, with room for one value.
    unsafe fn push_capture(&self, index: usize, from: usize, to: usize) {
        // SAFETY: by the caller.
        unsafe {
            match self.captures[..self.level].get(index) {
                None if index == 0 => push_bytes(self.state, &self.subject[from..to]),
                None => raise(self.state, c"invalid capture index"),
                Some(&Capture { start, extent }) => match extent {
                    Extent::Unfinished => raise(self.state, c"unfinished capture"),
                    Extent::Position => ffi::lua_pushnumber(self.state, (start + 1) as f64),
                    Extent::Length(len) => push_bytes(self.state, &self.subject[start..start + len]),
                },
            }
        }
    }

    /// Pushes all captures, or `whole`, if there are none. Returns how many values these are.
    ///
    /// # Safety
    /// Called in a frame of Lua's own that owns nothing.
    unsafe fn push_captures(&self, whole: Option<(usize, usize)>) -> c_int {
        let count = if self.level == 0 && whole.is_some() { 1 } else { self.level };
        let (from, to) = whole.unwrap_or_default();
        // SAFETY: by the caller; room is made for the values.
        unsafe {
            ffi::luaL_checkstack_(self.state, count as c_int, c"too many captures".as_ptr());
            for index in 0..count {
                self.push_capture(index, from, to);
            }
        }
        count as c_int
    }
}

/// # Safety
/// Only Lua calls it, as a function of a script.
pub(super) unsafe extern "C-unwind" fn find(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe { find_or_match(state, true) }
}

/// # Safety
/// Only Lua calls it, as a function of a script.
pub(super) unsafe extern "C-unwind" fn match_(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing.
    unsafe { find_or_match(state, false) }
}

/// Returns where `text` is in `subject`. A search in a short string costs less than its preparation.
fn find_plain(subject: &[u8], text: &[u8]) -> Option<usize> {
    const SHORT: usize = 64;
    match text.len() {
        0 => Some(0),
        len if subject.len() <= SHORT => subject.windows(len).position(|window| window == text),
        _ => memmem::find(subject, text),
    }
}

/// # Safety
/// Called in a frame of Lua's own that owns nothing.
unsafe fn find_or_match(state: *mut lua_State, is_find: bool) -> c_int {
    // SAFETY: by the caller. Both strings stay where they are.
    unsafe {
        let (subject, pattern) = (check_bytes(state, 1), check_bytes(state, 2));
        let start = ffi::luaL_optinteger(state, 3, 1) as isize;
        let start = if start < 0 { start.saturating_add_unsigned(subject.len() + 1) } else { start };
        let start = (start.max(1) as usize - 1).min(subject.len());
        let text = pattern.split(|&byte| byte == 0).next().unwrap_or_default();
        if is_find
            && (ffi::lua_toboolean(state, 4) != 0 || !text.iter().any(|byte| b"^$*+?.([%-".contains(byte)))
        {
            return match find_plain(&subject[start..], pattern) {
                Some(at) => {
                    ffi::lua_pushnumber(state, (start + at + 1) as f64);
                    ffi::lua_pushnumber(state, (start + at + pattern.len()) as f64);
                    2
                }
                None => {
                    ffi::lua_pushnil(state);
                    1
                }
            };
        }
        let mut matcher = Matcher::new(state, subject, pattern);
        let is_anchored = matcher.pattern_at(0) == b'^';
        for s in start..=subject.len() {
            if let Some(end) = matcher.match_at(s, usize::from(is_anchored)) {
                if !is_find {
                    return matcher.push_captures(Some((s, end)));
                }
                ffi::lua_pushnumber(state, (s + 1) as f64);
                ffi::lua_pushnumber(state, end as f64);
                return matcher.push_captures(None) + 2;
            }
            if is_anchored {
                break;
            }
        }
        ffi::lua_pushnil(state);
        1
    }
}

/// # Safety
/// Only Lua calls it, as a function of a script.
pub(super) unsafe extern "C-unwind" fn gmatch(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing. The upvalues are what `next_match` expects.
    unsafe {
        ffi::luaL_checklstring(state, 1, ptr::null_mut());
        ffi::luaL_checklstring(state, 2, ptr::null_mut());
        ffi::lua_settop(state, 2);
        ffi::lua_pushnumber(state, 0.0);
        ffi::lua_pushcclosure(state, next_match, 3);
        1
    }
}

/// The iterator of `gmatch`. Its upvalues are the subject, the pattern, and where the next match may begin.
///
/// # Safety
/// Only Lua calls it, as a function of a script.
unsafe extern "C-unwind" fn next_match(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing. The upvalues keep both strings.
    unsafe {
        let subject = bytes(state, ffi::lua_upvalueindex(1));
        let pattern = bytes(state, ffi::lua_upvalueindex(2));
        let mut matcher = Matcher::new(state, subject, pattern);
        let start = ffi::lua_tonumber(state, ffi::lua_upvalueindex(3)) as usize;
        for s in start..=subject.len() {
            if let Some(end) = matcher.match_at(s, 0) {
                let next = if end == s { end + 1 } else { end };
                ffi::lua_pushnumber(state, next as f64);
                ffi::lua_replace(state, ffi::lua_upvalueindex(3));
                return matcher.push_captures(Some((s, end)));
            }
        }
        0
    }
}

/// # Safety
/// Only Lua calls it, as a function of a script.
pub(super) unsafe extern "C-unwind" fn gsub(state: *mut lua_State) -> c_int {
    // SAFETY: a frame of Lua's own; it owns nothing. Lua's buffer keeps its pieces on Lua's stack.
    unsafe {
        let subject = check_bytes(state, 1);
        ffi::luaL_checklstring(state, 2, ptr::null_mut());
        let pattern = bytes(state, 2);
        let kind = ffi::lua_type(state, 3);
        let most = ffi::luaL_optinteger(state, 4, (subject.len() + 1) as ffi::lua_Integer) as c_int;
        if !matches!(kind, ffi::LUA_TNUMBER | ffi::LUA_TSTRING | ffi::LUA_TFUNCTION | ffi::LUA_TTABLE) {
            return ffi::luaL_argerror(state, 3, c"string/function/table expected".as_ptr());
        }
        let mut matcher = Matcher::new(state, subject, pattern);
        let is_anchored = matcher.pattern_at(0) == b'^';
        let mut buffer = MaybeUninit::<ffi::luaL_Buffer>::uninit();
        let buffer = buffer.as_mut_ptr();
        ffi::luaL_buffinit(state, buffer);
        let (mut s, mut count) = (0, 0);
        // Up to here the subject is copied or replaced.
        let mut done = 0;
        while count < most {
            let found = matcher.match_at(s, usize::from(is_anchored));
            if let Some(end) = found {
                count += 1;
                ffi::luaL_addlstring(buffer, subject[done..].as_ptr().cast(), s - done);
                add_replacement(&matcher, buffer, kind, s, end);
                done = end;
            }
            match found.filter(|&end| end > s) {
                Some(end) => s = end,
                None if s < subject.len() => s += 1,
                None => break,
            }
            if is_anchored {
                break;
            }
        }
        ffi::luaL_addlstring(buffer, subject[done..].as_ptr().cast(), subject.len() - done);
        ffi::luaL_pushresult(buffer);
        ffi::lua_pushnumber(state, f64::from(count));
        2
    }
}

/// Adds what replaces a match.
///
/// # Safety
/// Called in a frame of Lua's own that owns nothing, with the arguments of `gsub`.
unsafe fn add_replacement(
    matcher: &Matcher,
    buffer: *mut ffi::luaL_Buffer,
    kind: c_int,
    from: usize,
    to: usize,
) {
    let state = matcher.state;
    // SAFETY: by the caller.
    unsafe {
        match kind {
            ffi::LUA_TFUNCTION => {
                ffi::lua_pushvalue(state, 3);
                let captures = matcher.push_captures(Some((from, to)));
                ffi::lua_call(state, captures, 1);
            }
            ffi::LUA_TTABLE => {
                matcher.push_capture(0, from, to);
                ffi::lua_gettable_(state, 3);
            }
            _ => return add_text(matcher, buffer, from, to),
        }
        if ffi::lua_toboolean(state, -1) == 0 {
            ffi::lua_pop(state, 1);
            push_bytes(state, &matcher.subject[from..to]);
        } else if ffi::lua_isstring(state, -1) == 0 {
            let name = ffi::luaL_typename(state, -1);
            ffi::luaL_error(state, c"invalid replacement value (a %s)".as_ptr(), name);
        }
        ffi::luaL_addvalue(buffer);
    }
}

/// Adds the text that replaces a match, with its captures in place of `%0` to `%9`.
///
/// # Safety
/// As for [`add_replacement`]; the third argument is a string or a number.
unsafe fn add_text(matcher: &Matcher, buffer: *mut ffi::luaL_Buffer, from: usize, to: usize) {
    // SAFETY: by the caller. The argument stays where it is.
    unsafe {
        let text = bytes(matcher.state, 3);
        let mut at = 0;
        while at < text.len() {
            if text[at] == ESCAPE {
                at += 1;
                match text.get(at).copied().unwrap_or(0) {
                    b'0' => ffi::luaL_addlstring(buffer, matcher.subject[from..].as_ptr().cast(), to - from),
                    digit @ b'1'..=b'9' => {
                        matcher.push_capture(usize::from(digit - b'1'), from, to);
                        ffi::luaL_addvalue(buffer);
                    }
                    other => ffi::luaL_addlstring(buffer, [other].as_ptr().cast(), 1),
                }
                at += 1;
            } else {
                let plain = memchr::memchr(ESCAPE, &text[at..]).unwrap_or(text.len() - at);
                ffi::luaL_addlstring(buffer, text[at..].as_ptr().cast(), plain);
                at += plain;
            }
        }
    }
}
