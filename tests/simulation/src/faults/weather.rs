//! How much goes wrong in a world.

use crate::dice::Dice;

/// How likely faults are, per call unless said otherwise.
#[derive(Clone, Debug, Default)]
pub struct Weather {
    /// Refused.
    pub refused: f64,
    /// Done, answer lost.
    pub answer_lost: f64,
    /// Slow by seconds.
    pub slow: f64,
    /// Killed, before or after.
    pub killed: f64,
    /// Of settling calls: long after the lease.
    pub straggled: f64,
    /// Per answer to a caller.
    pub caller_answer_lost: f64,
    /// Per run: its clock is off.
    pub skewed: f64,
    /// Per cron.
    pub cron_missed: f64,
    /// Per cron.
    pub cron_doubled: f64,
    /// Per message sent.
    pub duplicated: f64,
    /// Per message acknowledged.
    pub ack_lost: f64,
    /// Per message sent.
    pub message_lost: f64,
    /// Per batch: taken in any order.
    pub reordered: f64,
}

impl Weather {
    /// A storm of its own kind for each seed: some worlds see many kills, others many lost answers, few see everything.
    pub fn draw(dice: &Dice) -> Self {
        let level = |most: f64| if dice.chance(0.2) { 0.0 } else { dice.fraction(0.0, most) };
        Self {
            refused: level(0.04),
            answer_lost: level(0.04),
            slow: level(0.03),
            killed: level(0.02),
            straggled: level(0.04),
            caller_answer_lost: level(0.05),
            skewed: level(0.5),
            cron_missed: level(0.3),
            cron_doubled: level(0.5),
            duplicated: level(0.05),
            ack_lost: level(0.03),
            message_lost: level(0.03),
            reordered: level(0.5),
        }
    }
}
