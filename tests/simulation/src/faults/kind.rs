//! The kinds of faults, with the names under which they are counted.

/// Declares the kinds of faults with the names under which they are counted.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $name:literal,)*) => {
        /// A kind of fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum FaultKind { $($(#[$doc])* $kind,)* }

        impl FaultKind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// What it is called in reports.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }
        }
    };
}

kinds! {
    /// D1 did not do it.
    SqlRefused "D1 refused",
    /// D1 did it, and its answer got lost.
    SqlAnswerLost "D1 did it, answer lost",
    /// D1 took its time.
    SqlSlow "D1 slow",
    /// D1 did not answer for a while.
    SqlDown "D1 down",
    /// A queue did not take a message.
    SendRefused "queue refused",
    /// A queue took a message, and its answer got lost.
    SendAnswerLost "queue took it, answer lost",
    /// A queue took its time.
    SendSlow "queue slow",
    /// A queue took nothing for a while.
    QueueDown "queue down",
    /// R2 did not do it.
    BlobRefused "R2 refused",
    /// R2 did it, and its answer got lost.
    BlobAnswerLost "R2 did it, answer lost",
    /// R2 took its time.
    BlobSlow "R2 slow",
    /// R2 did not answer for a while.
    BlobDown "R2 down",
    /// A webhook of alerts did not take one.
    SinkRefused "alert sink refused",
    /// A webhook of alerts took one, and its answer got lost.
    SinkAnswerLost "alert sink took it, answer lost",
    /// A run ended just before a call.
    KilledBefore "killed before a call",
    /// A run ended just after a call.
    KilledAfter "killed after a call",
    /// A run went on long after its lease had ended.
    Straggled "straggled past its lease",
    /// The answer never reached who had called.
    AnswerLost "answer to the caller lost",
    /// A clock is ahead or behind.
    ClockSkewed "clock skewed",
    /// A cron did not come.
    CronMissed "cron missed",
    /// A cron came twice at once.
    CronDoubled "two crons at once",
    /// A queue stored a message twice.
    Duplicated "message duplicated",
    /// A queue delivered a message that had been acknowledged.
    AckLost "acknowledgement lost",
    /// A queue delivered late messages before early ones.
    Reordered "messages reordered",
    /// A queue lost a message.
    MessageLost "message lost",
    /// A queue delivered nothing for a while.
    DeliveryPaused "queue not delivered",
    /// Something that is not the gateway's got into a queue.
    ForeignMessage "foreign message",
    /// A handler failed for this time.
    HandlerTransient "handler failed, transient",
    /// A handler failed for good.
    HandlerPermanent "handler failed, permanent",
    /// A handler ended its isolate.
    HandlerPanicked "handler panicked",
    /// A handler never came back.
    HandlerHung "handler hung",
    /// A handler took minutes.
    HandlerSlow "handler slow",
    /// A handler's effect was refused.
    EffectRefused "effect refused",
    /// An effect was carried out twice.
    Repeated "call carried out twice",
}
