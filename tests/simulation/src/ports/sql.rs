//! A shard of the ledger.

use std::rc::Rc;

use swarm_domain::ledger::Ledger;
use swarm_domain::ports::{Outcome, Sql, SqlError, Statement};

use crate::faults::Port;
use crate::process::Process;

/// A shard in the hands of one run.
pub struct SimShard {
    process: Rc<Process>,
    number: usize,
}

/// All shards of the world, for one run.
pub fn ledger(process: &Rc<Process>) -> Ledger<SimShard> {
    let shard = |number| SimShard { process: Rc::clone(process), number };
    Ledger::new(shard(0), (1..process.world.shards.len()).map(shard).collect())
}

impl Sql for SimShard {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Outcome>, SqlError> {
        let what = format!("D1 shard {}, {} statements", self.number, statements.len());
        let commit = || self.process.world.commit(&self.process, self.number, statements.clone());
        let answer = self.process.call(Port::Sql(self.number), &what, commit).await;
        answer.unwrap_or_else(|problem| Err(SqlError::Unavailable(problem.to_owned())))
    }
}
