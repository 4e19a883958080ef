//! The decimal digits of doubles by Florian Loitsch's Grisu2 algorithm, which Redis uses since 7.2. The result is
//! nearly always the shortest text that reads back as the same double. Where it is not, clients can see the surplus
//! digit, so the algorithm has to be the same.

use std::sync::OnceLock;

use num_bigint::BigUint;

/// The number `fraction` × 2^`exponent`.
#[derive(Clone, Copy)]
struct Float {
    fraction: u64,
    exponent: i32,
}

impl Float {
    /// Returns the same number, shifted so that the highest bit of `fraction` is set.
    fn normalized(self) -> Float {
        let shift = self.fraction.leading_zeros();
        Float { fraction: self.fraction << shift, exponent: self.exponent - shift as i32 }
    }

    /// Returns the product, rounded to 64 bits.
    fn times(self, other: Float) -> Float {
        let product = self.fraction as u128 * other.fraction as u128 + (1 << 63);
        Float { fraction: (product >> 64) as u64, exponent: self.exponent + other.exponent + 64 }
    }
}

const FIRST_POWER: i32 = -348;
const STEP: i32 = 8;
const POWERS: usize = 87;

/// Returns every eighth power of ten, beginning with 10^-348, each with 64 significant bits.
fn powers() -> &'static [Float; POWERS] {
    static POWERS_OF_TEN: OnceLock<[Float; POWERS]> = OnceLock::new();
    POWERS_OF_TEN.get_or_init(|| std::array::from_fn(|index| power_of_ten(FIRST_POWER + STEP * index as i32)))
}

fn power_of_ten(power: i32) -> Float {
    let magnitude = BigUint::from(10u32).pow(power.unsigned_abs());
    // Enough bits for a quotient of more than 64 bits.
    let scale = if power < 0 { magnitude.bits() + 128 } else { 128 };
    let number = if power < 0 { (BigUint::from(1u32) << scale) / magnitude } else { magnitude << scale };
    let surplus = number.bits() - 64;
    let rounded = (number + (BigUint::from(1u32) << (surplus - 1))) >> surplus;
    let fraction = rounded.iter_u64_digits().next().unwrap_or_default();
    Float { fraction, exponent: surplus as i32 - scale as i32 }
}

/// Returns the power of ten that scales a number with this exponent to between 2^-60 and 2^-32, and the exponent of
/// that power.
fn scaling_power(exponent: i32) -> (Float, i32) {
    let guess = (-(exponent + POWERS as i32) as f64 * std::f64::consts::LOG10_2) as i32;
    let mut index = (guess - FIRST_POWER) / STEP;
    loop {
        let power = powers()[index as usize];
        match exponent + power.exponent + 64 {
            ..-60 => index += 1,
            -60..=-32 => return (power, FIRST_POWER + STEP * index),
            _ => index -= 1,
        }
    }
}

/// Returns the digits of a finite positive number and a decimal exponent: the value is the digits, read as an integer,
/// times ten to the power of that exponent.
pub fn digits(value: f64) -> (String, i32) {
    const HIDDEN_BIT: u64 = 1 << 52;
    let bits = value.to_bits();
    let (low_bits, biased) = (bits & (HIDDEN_BIT - 1), (bits >> 52 & 0x7ff) as i32);
    let exact = if biased == 0 {
        Float { fraction: low_bits, exponent: -1074 }
    } else {
        Float { fraction: low_bits | HIDDEN_BIT, exponent: biased - 1075 }
    };
    // The boundaries are half way to the neighbouring doubles; the lower neighbour of a power of two is nearer.
    let upper = Float { fraction: (exact.fraction << 1) + 1, exponent: exact.exponent - 1 }.normalized();
    let shift = if exact.fraction == HIDDEN_BIT { 2 } else { 1 };
    let lower_exponent = exact.exponent - shift;
    let lower = Float {
        fraction: ((exact.fraction << shift) - 1) << (lower_exponent - upper.exponent),
        exponent: upper.exponent,
    };
    let (scaling, power) = scaling_power(upper.exponent);
    let (exact, upper, lower) =
        (exact.normalized().times(scaling), upper.times(scaling), lower.times(scaling));
    let upper = Float { fraction: upper.fraction - 1, ..upper };
    let (digits, kappa) = generate(exact, upper, upper.fraction - (lower.fraction + 1));
    (digits, kappa - power)
}

/// Returns the fewest digits of a number between `upper − delta` and `upper`, and the decimal exponent of the last
/// digit.
fn generate(exact: Float, upper: Float, mut delta: u64) -> (String, i32) {
    let point = -upper.exponent as u32;
    let one = 1u64 << point;
    let mut distance = upper.fraction - exact.fraction;
    let (mut whole, mut rest) = (upper.fraction >> point, upper.fraction & (one - 1));
    let mut digits = Vec::new();
    let push = |digits: &mut Vec<u8>, digit: u64| {
        if digit > 0 || !digits.is_empty() {
            digits.push(b'0' + digit as u8);
        }
    };
    for kappa in (0..10).rev() {
        let unit = 10u64.pow(kappa);
        push(&mut digits, whole / unit);
        whole %= unit;
        let left = (whole << point) + rest;
        if left <= delta {
            approach(&mut digits, delta, left, unit << point, distance);
            return (into_text(digits), kappa as i32);
        }
    }
    let mut kappa = 0;
    loop {
        rest *= 10;
        delta *= 10;
        distance = distance.wrapping_mul(10);
        kappa -= 1;
        push(&mut digits, rest >> point);
        rest &= one - 1;
        if rest < delta {
            approach(&mut digits, delta, rest, one, distance);
            return (into_text(digits), kappa);
        }
    }
}

/// Lowers the last digit while this brings the number nearer to the exact value.
fn approach(digits: &mut [u8], delta: u64, mut left: u64, unit: u64, distance: u64) {
    while left < distance
        && delta - left >= unit
        && (left + unit < distance || distance - left > left + unit - distance)
    {
        if let Some(last) = digits.last_mut() {
            *last -= 1;
        }
        left += unit;
    }
}

fn into_text(digits: Vec<u8>) -> String {
    digits.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_grisu() {
        for (value, text, power) in [
            (0.1, "1", -1),
            (1.0, "1", 0),
            (123456.0, "123456", 0),
            (1e23, "9999999999999999", 7),
            (860.99606, "8609960600000001", -13),
            (27.24817, "27248169999999998", -15),
            (5e-324, "5", -324),
            (f64::MAX, "17976931348623157", 292),
        ] {
            assert_eq!(digits(value), (text.to_string(), power), "{value}");
        }
    }

    #[test]
    fn digits_read_back() {
        let mut bits = 0x9e37_79b9_7f4a_7c15u64;
        for _ in 0..100_000 {
            bits = bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let value = f64::from_bits(bits >> 1);
            if value.is_finite() && value > 0.0 {
                let (digits, power) = digits(value);
                assert_eq!(format!("{digits}e{power}").parse(), Ok(value));
            }
        }
    }
}
