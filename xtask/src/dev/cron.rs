//! Fires the Workers' crons at their minutes, as production does and wrangler dev does not.

use std::thread;

use anyhow::{Context, Result, bail};
use time::{OffsetDateTime, Weekday};

use crate::config::Config;
use crate::http::Gateway;

/// One cron expression of one Worker.
struct Trigger {
    worker: String,
    cron: String,
    schedule: Schedule,
}

/// All crons of the running Workers.
pub struct Crons {
    triggers: Vec<Trigger>,
    last_minute: i64,
}

impl Crons {
    /// Reads the crons of all configs; the current minute has already begun and does not count.
    pub fn of(configs: &[Config], now: OffsetDateTime) -> Result<Self> {
        let mut triggers = Vec::new();
        for config in configs {
            for cron in config.crons() {
                let schedule = Schedule::parse(cron).with_context(|| {
                    format!("{}: cron '{cron}' cannot be fired locally", config.path.display())
                })?;
                triggers.push(Trigger { worker: config.name().to_owned(), cron: cron.to_owned(), schedule });
            }
        }
        Ok(Self { triggers, last_minute: minute_of(now) })
    }

    /// Fires what is due if a new minute has begun. Each firing has its own thread, because one slow Worker must not
    /// delay the others.
    pub fn tick(&mut self, now: OffsetDateTime, gateway: &Gateway) {
        if minute_of(now) == self.last_minute {
            return;
        }
        self.last_minute = minute_of(now);
        for trigger in self.triggers.iter().filter(|trigger| trigger.schedule.is_due(now)) {
            let gateway = gateway.clone();
            let (worker, cron) = (trigger.worker.clone(), trigger.cron.clone());
            thread::spawn(move || {
                if let Err(error) = gateway.fire_cron(&worker, &cron) {
                    eprintln!("{error:#}");
                }
            });
        }
    }
}

fn minute_of(now: OffsetDateTime) -> i64 {
    now.unix_timestamp().div_euclid(60)
}

/// The five fields of a cron expression, each as the values that it allows.
struct Schedule {
    minutes: Vec<u8>,
    hours: Vec<u8>,
    days: Vec<u8>,
    months: Vec<u8>,
    weekdays: Vec<u8>,
}

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];

/// Cloudflare counts from Sunday = 1, unlike most crons.
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

impl Schedule {
    fn parse(cron: &str) -> Result<Self> {
        let fields: Vec<&str> = cron.split_whitespace().collect();
        let &[minutes, hours, days, months, weekdays] = fields.as_slice() else {
            bail!("a cron has five fields");
        };
        Ok(Self {
            minutes: values(minutes, 0, 59, &[])?,
            hours: values(hours, 0, 23, &[])?,
            days: values(days, 1, 31, &[])?,
            months: values(months, 1, 12, &MONTHS)?,
            weekdays: values(weekdays, 1, 7, &WEEKDAYS)?,
        })
    }

    fn is_due(&self, now: OffsetDateTime) -> bool {
        self.minutes.contains(&now.minute())
            && self.hours.contains(&now.hour())
            && self.days.contains(&now.day())
            && self.months.contains(&u8::from(now.month()))
            && self.weekdays.contains(&weekday_number(now.weekday()))
    }
}

fn weekday_number(weekday: Weekday) -> u8 {
    weekday.number_days_from_sunday() + 1
}

/// What a field allows: a list of `*`, values and ranges, each with an optional step.
fn values(field: &str, min: u8, max: u8, names: &[&str]) -> Result<Vec<u8>> {
    let one = |text: &str| -> Result<u8> {
        let named = names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let number = match named {
            Some(at) => u8::try_from(at)? + min,
            None => text.parse().with_context(|| format!("'{text}' is no value here"))?,
        };
        if (min..=max).contains(&number) { Ok(number) } else { bail!("{number} is not in {min}–{max}") }
    };
    let mut allowed = Vec::new();
    for item in field.split(',') {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<u8>().context("a step is a number")?)),
            None => (item, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (min, max),
            Some((first, last)) => (one(first)?, one(last)?),
            // `5/10` means from 5 on, `5` means 5.
            None => (one(range)?, if step.is_some() { max } else { one(range)? }),
        };
        let step = step.unwrap_or(1);
        if step == 0 || first > last {
            bail!("'{item}' allows nothing");
        }
        allowed.extend((first..=last).step_by(usize::from(step)));
    }
    Ok(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn a_cron_is_due_at_its_minutes() {
        // 2026-12-01 is a Tuesday.
        let now = datetime!(2026-12-01 03:30 UTC);
        let cases = [
            ("* * * * *", true),
            ("*/2 * * * *", true),
            ("*/4 * * * *", false),
            ("30 3 * * *", true),
            ("10-40/10 3,4 * * *", true),
            ("5/25 * * * *", true),
            ("30 3 1 DEC tue", true),
            ("30 3 * * 3", true),
            ("30 3 * * 2", false),
            ("30 3 2 * *", false),
        ];
        for (cron, due) in cases {
            assert_eq!(Schedule::parse(cron).unwrap().is_due(now), due, "{cron}");
        }
    }

    #[test]
    fn what_cannot_be_fired_is_refused() {
        for cron in ["", "* * * *", "60 * * * *", "*/0 * * * *", "0 0 L * *", "9-3 * * * *"] {
            assert!(Schedule::parse(cron).is_err(), "{cron:?}");
        }
    }
}
