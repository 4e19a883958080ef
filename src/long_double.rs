#[derive(Clone, Copy)]
pub struct LongDouble(f64);
impl LongDouble {
    pub const ZERO: LongDouble = LongDouble(0.0);
    pub fn parse(b: &[u8]) -> Option<LongDouble> {
        crate::num::parse_f64(b).map(LongDouble)
    }
    pub fn add(self, o: LongDouble) -> LongDouble {
        LongDouble(self.0 + o.0)
    }
    pub fn is_finite(self) -> bool {
        self.0.is_finite()
    }
    pub fn to_string(self) -> String {
        crate::num::shortest(self.0)
    }
}
