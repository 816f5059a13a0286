//! Virtual time, and tasks that take turns in the order of the dice.
//!
//! A task is one run of a Worker, a client, or a machine of the platform. Time moves only when no task is ready, and then
//! straight to the next moment at which one will be. Tasks of one isolate die together.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::dice::Dice;

/// What dies together.
pub type Isolate = u64;

type Work = Pin<Box<dyn Future<Output = ()>>>;

struct Task {
    isolate: Isolate,
    work: Work,
    alarm: Arc<Alarm>,
}

/// Tasks that want a turn.
type Ready = Arc<Mutex<Vec<u64>>>;

/// Puts its task among those that want a turn, once until it has had it.
struct Alarm {
    task: u64,
    queued: AtomicBool,
    ready: Ready,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            self.ready.lock().unwrap_or_else(PoisonError::into_inner).push(self.task);
        }
    }
}

struct Timer {
    at_ms: i64,
    number: u64,
    waker: Waker,
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ms, self.number).cmp(&(other.at_ms, other.number))
    }
}

/// A handle to the tasks and the time of one world.
#[derive(Clone)]
pub struct Executor(Rc<State>);

struct State {
    now_ms: Cell<i64>,
    numbers: Cell<u64>,
    turns: Cell<u64>,
    tasks: RefCell<BTreeMap<u64, Task>>,
    timers: RefCell<BinaryHeap<Reverse<Timer>>>,
    ready: Ready,
    running: Cell<Option<Isolate>>,
    doomed: Cell<bool>,
    dice: Rc<Dice>,
}

impl Executor {
    /// Nothing to do yet, at this time.
    pub fn new(start_ms: i64, dice: Rc<Dice>) -> Self {
        Self(Rc::new(State {
            now_ms: Cell::new(start_ms),
            numbers: Cell::new(0),
            turns: Cell::new(0),
            tasks: RefCell::default(),
            timers: RefCell::default(),
            ready: Ready::default(),
            running: Cell::new(None),
            doomed: Cell::new(false),
            dice,
        }))
    }

    /// The true time, which no Worker's clock shows exactly.
    pub fn now_ms(&self) -> i64 {
        self.0.now_ms.get()
    }

    /// How many turns tasks have had.
    pub fn turns(&self) -> u64 {
        self.0.turns.get()
    }

    /// A number that was not given before.
    pub fn next_number(&self) -> u64 {
        let number = self.0.numbers.get() + 1;
        self.0.numbers.set(number);
        number
    }

    /// Starts a task.
    pub fn spawn(&self, isolate: Isolate, work: impl Future<Output = ()> + 'static) {
        let number = self.next_number();
        let alarm = Arc::new(Alarm {
            task: number,
            queued: AtomicBool::new(false),
            ready: Arc::clone(&self.0.ready),
        });
        let task = Task { isolate, work: Box::pin(work), alarm: Arc::clone(&alarm) };
        self.0.tasks.borrow_mut().insert(number, task);
        alarm.wake();
    }

    /// Ends every task of an isolate where it stands. A task that ends itself this way goes on until it waits, and has to see
    /// to it that it does so at once.
    pub fn kill(&self, isolate: Isolate) {
        let of_isolate = |task: &&mut Task| task.isolate == isolate;
        let mut tasks = self.0.tasks.borrow_mut();
        let doomed: Vec<u64> =
            tasks.iter_mut().filter(|(_, task)| of_isolate(task)).map(|(number, _)| *number).collect();
        let dropped: Vec<_> = doomed.iter().filter_map(|number| tasks.remove(number)).collect();
        drop(tasks);
        drop(dropped);
        if self.0.running.get() == Some(isolate) {
            self.0.doomed.set(true);
        }
    }

    /// Ends everything.
    pub fn kill_all(&self) {
        let tasks = std::mem::take(&mut *self.0.tasks.borrow_mut());
        drop(tasks);
        self.0.timers.borrow_mut().clear();
    }

    /// Waits on the world's time.
    pub fn sleep_ms(&self, ms: i64) -> Sleep {
        Sleep { executor: self.clone(), until_ms: self.now_ms() + ms.max(0), set: false }
    }

    /// Waits until a moment.
    pub fn sleep_until(&self, until_ms: i64) -> Sleep {
        Sleep { executor: self.clone(), until_ms, set: false }
    }

    /// Runs tasks until the world's time is `until_ms`, or until `stop` says so.
    pub fn run_until(&self, until_ms: i64, stop: &dyn Fn() -> bool) {
        while !stop() {
            if let Some(task) = self.next_ready() {
                self.turn(task);
            } else if !self.advance(until_ms) {
                break;
            }
        }
    }

    fn next_ready(&self) -> Option<u64> {
        let mut ready = self.0.ready.lock().unwrap_or_else(PoisonError::into_inner);
        let count = ready.len();
        (count > 0).then(|| ready.swap_remove(self.0.dice.below(count)))
    }

    fn turn(&self, number: u64) {
        let Some(mut task) = self.0.tasks.borrow_mut().remove(&number) else { return };
        task.alarm.queued.store(false, Ordering::Relaxed);
        self.0.turns.set(self.0.turns.get() + 1);
        self.0.running.set(Some(task.isolate));
        let waker = Waker::from(Arc::clone(&task.alarm));
        let polled = task.work.as_mut().poll(&mut Context::from_waker(&waker));
        self.0.running.set(None);
        if polled == Poll::Pending && !self.0.doomed.replace(false) {
            self.0.tasks.borrow_mut().insert(number, task);
        }
    }

    /// Moves to the next moment at which a task wakes. `false` if that is later than `until_ms`, where the time stops.
    fn advance(&self, until_ms: i64) -> bool {
        let next_ms = self.0.timers.borrow().peek().map(|Reverse(timer)| timer.at_ms);
        let Some(at_ms) = next_ms.filter(|at_ms| *at_ms <= until_ms) else {
            self.0.now_ms.set(self.now_ms().max(until_ms));
            return false;
        };
        self.0.now_ms.set(self.now_ms().max(at_ms));
        loop {
            let due = self.0.timers.borrow().peek().is_some_and(|Reverse(timer)| timer.at_ms <= at_ms);
            if !due {
                return true;
            }
            let timer = self.0.timers.borrow_mut().pop();
            if let Some(Reverse(timer)) = timer {
                timer.waker.wake();
            }
        }
    }
}

/// See [`Executor::sleep_ms`].
pub struct Sleep {
    executor: Executor,
    until_ms: i64,
    set: bool,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.set && self.executor.now_ms() >= self.until_ms {
            return Poll::Ready(());
        }
        if !self.set {
            let timer = Timer {
                at_ms: self.until_ms,
                number: self.executor.next_number(),
                waker: context.waker().clone(),
            };
            self.executor.0.timers.borrow_mut().push(Reverse(timer));
            self.set = true;
        }
        Poll::Pending
    }
}

/// Waits for ever; for who is about to be ended.
pub async fn never<T>() -> T {
    std::future::pending().await
}

/// Something that one task waits for and others bring about.
#[derive(Default)]
pub struct Signal(RefCell<Option<Waker>>);

impl Signal {
    /// Wakes who waits.
    pub fn raise(&self) {
        if let Some(waker) = self.0.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Waits until it is raised or something else wakes the task; the caller looks for itself which.
    pub async fn wait(&self) {
        let mut waited = false;
        std::future::poll_fn(|context| {
            if waited {
                return Poll::Ready(());
            }
            waited = true;
            *self.0.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Waits until it is raised or the time is `until_ms`.
    pub async fn wait_until(&self, executor: &Executor, until_ms: i64) {
        let mut sleep = executor.sleep_until(until_ms);
        let mut waited = false;
        std::future::poll_fn(|context| {
            let slept = Pin::new(&mut sleep).poll(context);
            if waited || slept.is_ready() {
                return Poll::Ready(());
            }
            waited = true;
            *self.0.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
