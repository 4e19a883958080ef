//! The 80-bit floating-point numbers of x87, which `INCRBYFLOAT` and `HINCRBYFLOAT` calculate with.
//!
//! Redis uses C's `long double`, and the difference shows in the last digits: `0.1` plus `0.2` is `0.3` here, but not
//! with doubles. On every machine these numbers have a sign, 15 bits of exponent and 64 bits of significand.

use num_bigint::BigUint;
use rustc_apfloat::ieee::{Double, X87DoubleExtended};
use rustc_apfloat::{Float, FloatConvert, Round, Status};

/// The longest text of a number: Redis reads it into a buffer of 5 KiB.
const TEXT_MAX: usize = 5 * 1024 - 1;
/// Digits after the point of the printed form.
const DECIMALS: usize = 17;
/// The lowest bit of a significand weighs 2 to the power of (exponent − bias).
const EXPONENT_BIAS: i32 = 16383 + 63;

/// An extended-precision number, possibly infinite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LongDouble(X87DoubleExtended);

impl LongDouble {
    /// Reads a number as `strtold` does: decimal or hexadecimal, or `inf`/`infinity` in any case. Returns `None` for
    /// blanks, NaN, trailing bytes, and numbers that overflow to infinity or underflow to zero.
    pub fn parse(text: &[u8]) -> Option<LongDouble> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= TEXT_MAX)?;
        let (is_negative, magnitude) = match text.strip_prefix(['+', '-']) {
            Some(magnitude) => (text.starts_with('-'), magnitude),
            None => (false, text),
        };
        let value = parse_magnitude(magnitude)?;
        Some(LongDouble(if is_negative { -value } else { value }))
    }

    /// Returns whether the sign is negative.
    pub fn is_negative(self) -> bool {
        self.0.is_negative()
    }

    /// Returns whether the number is neither infinite nor NaN.
    pub fn is_finite(self) -> bool {
        self.0.is_finite()
    }

    /// Returns the number times `factor`, rounded up, or `None` if the result does not fit an `i64`.
    pub fn times_ceil(self, factor: i64) -> Option<i64> {
        let mut exact = false;
        let product = (self.0 * LongDouble::from(factor).0).value;
        let rounded = product.to_i128_r(64, Round::TowardPositive, &mut exact);
        if rounded.status.contains(Status::INVALID_OP) { None } else { i64::try_from(rounded.value).ok() }
    }

    /// Returns the sign, the significand and the exponent of two that it is multiplied by.
    fn parts(self) -> (bool, u64, i32) {
        let bits = self.0.to_bits();
        let exponent = (bits >> 64) as i32 & 0x7fff;
        // Exponent 0 weighs as much as exponent 1, and has no leading bit.
        (bits >> 79 != 0, bits as u64, exponent.max(1) - EXPONENT_BIAS)
    }
}

impl std::ops::Add for LongDouble {
    type Output = LongDouble;

    fn add(self, other: LongDouble) -> LongDouble {
        LongDouble((self.0 + other.0).value)
    }
}

impl From<f64> for LongDouble {
    fn from(number: f64) -> LongDouble {
        let mut loses_digits = false;
        LongDouble(Double::from_bits(number.to_bits().into()).convert(&mut loses_digits).value)
    }
}

impl From<i64> for LongDouble {
    fn from(number: i64) -> LongDouble {
        LongDouble(X87DoubleExtended::from_i128(number as i128).value)
    }
}

/// Prints Redis's "human" form: `%.17Lf` without trailing zeros, and never `-0`.
impl std::fmt::Display for LongDouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.is_finite() {
            let text = if self.0.is_nan() { "nan" } else { "inf" };
            return write!(f, "{}{text}", if self.0.is_negative() { "-" } else { "" });
        }
        let (is_negative, significand, exponent) = self.parts();
        let scaled = shift_rounded(significand * BigUint::from(10u8).pow(DECIMALS as u32), exponent);
        let digits = format!("{scaled:0>width$}", width = DECIMALS + 1);
        let (whole, fraction) = digits.split_at(digits.len() - DECIMALS);
        let fraction = fraction.trim_end_matches('0');
        // A negative number that rounds to nothing prints as zero.
        let sign = if is_negative && (whole, fraction) != ("0", "") { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        write!(f, "{sign}{whole}{point}{fraction}")
    }
}

/// Returns `number` times 2 to the power of `exponent`, rounded to the nearest integer, ties to even.
fn shift_rounded(number: BigUint, exponent: i32) -> BigUint {
    if exponent >= 0 {
        return number << exponent;
    }
    let dropped = exponent.unsigned_abs() as u64;
    let floor = &number >> dropped;
    let is_half_or_more = number.bit(dropped - 1);
    let is_more = number.trailing_zeros().is_some_and(|zeros| zeros < dropped - 1);
    if is_half_or_more && (is_more || floor.bit(0)) { floor + 1u8 } else { floor }
}

/// Reads a number without its sign.
fn parse_magnitude(text: &str) -> Option<X87DoubleExtended> {
    if text.eq_ignore_ascii_case("inf") || text.eq_ignore_ascii_case("infinity") {
        return Some(X87DoubleExtended::INFINITY);
    }
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, exponent) = match hex {
        Some(hex) => split_exponent(hex, ['p', 'P'])?,
        None => split_exponent(text, ['e', 'E'])?,
    };
    let radix = if hex.is_some() { 16 } else { 10 };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = || whole.chars().chain(fraction.chars());
    if all_digits().next().is_none() || !all_digits().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    if all_digits().all(|digit| digit == '0') {
        return Some(X87DoubleExtended::ZERO);
    }
    let text = match hex {
        Some(_) => format!("0x{digits}p{exponent}"),
        None => format!("{digits}e{exponent}"),
    };
    let parsed = X87DoubleExtended::from_str_r(&text, Round::NearestTiesToEven).ok()?;
    let is_out_of_range = parsed.status.contains(Status::OVERFLOW) || parsed.value.is_zero();
    (!is_out_of_range).then_some(parsed.value)
}

/// Splits a number into its digits and its exponent, which is 0 if absent.
fn split_exponent(text: &str, letters: [char; 2]) -> Option<(&str, i32)> {
    let Some((digits, exponent)) = text.split_once(letters) else { return Some((text, 0)) };
    let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if unsigned.is_empty() || !unsigned.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    // Beyond an exponent of a million every number that fits the buffer is infinite or zero.
    let magnitude = unsigned.trim_start_matches('0');
    let magnitude = if magnitude.len() > 6 { 1_000_000 } else { magnitude.parse().unwrap_or(0) };
    Some((digits, if exponent.starts_with('-') { -magnitude } else { magnitude }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(a: &str, b: &str) -> Option<String> {
        Some((LongDouble::parse(a.as_bytes())? + LongDouble::parse(b.as_bytes())?).to_string())
    }

    fn print(text: &str) -> Option<String> {
        LongDouble::parse(text.as_bytes()).map(|value| value.to_string())
    }

    #[test]
    fn sums_are_those_of_redis() {
        let sums = [
            ("0.1", "0.2", "0.3"),
            ("10.50", "0.1", "10.6"),
            ("5.0e3", "2.0e2", "5200"),
            ("3", "-3.0000000000000000001", "0"),
            ("9223372036854775807", "1", "9223372036854775808"),
            ("1e20", "0.00001", "100000000000000000000"),
            ("0x10", "0x.8p1", "17"),
            ("-1.5", "+1.5", "0"),
        ];
        for (a, b, expected) in sums {
            assert_eq!(sum(a, b).as_deref(), Some(expected), "{a} + {b}");
        }
    }

    #[test]
    fn prints_seventeen_decimals_without_trailing_zeros() {
        let cases = [
            ("3.14159265358979323846", "3.14159265358979324"),
            ("-0", "0"),
            ("-1e-30", "0"),
            ("5.", "5"),
            (".5", "0.5"),
            ("1e30", "1000000000000000000024696061952"),
            ("inf", "inf"),
            ("-INFINITY", "-inf"),
        ];
        for (text, expected) in cases {
            assert_eq!(print(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn halves_round_to_the_even_digit() {
        assert_eq!(print("0.000003814697265625").as_deref(), Some("0.00000381469726562"));
        assert_eq!(print("0.000011444091796875").as_deref(), Some("0.00001144409179688"));
        assert_eq!(shift_rounded(BigUint::from(5u8), -1), BigUint::from(2u8));
        assert_eq!(shift_rounded(BigUint::from(7u8), -1), BigUint::from(4u8));
        assert_eq!(shift_rounded(BigUint::from(9u8), -2), BigUint::from(2u8));
        assert_eq!(shift_rounded(BigUint::from(11u8), -2), BigUint::from(3u8));
    }

    #[test]
    fn refuses_text_that_strtold_does_not_read_completely() {
        let refused = [
            "",
            " 1",
            "1 ",
            "+",
            "-",
            ".",
            "1e",
            "1e+",
            "e5",
            "0x",
            "0xg",
            "0x1p",
            "nan",
            "--1",
            "1.2.3",
            "infin",
            "1e5000",
            "-1e5000",
            "1e-5000",
            "1e99999999999999999999",
            "1_0",
            "٣",
        ];
        for text in refused {
            assert_eq!(print(text), None, "{text:?}");
        }
        assert_eq!(print(&"1".repeat(5120)), None);
        assert!(print("1e4932").is_some() && print("4e-4951").is_some());
    }
}
