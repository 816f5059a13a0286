//! Mutants: the gateway with one rule taken away, without a change to its code. A mutant rewrites or leaves out a statement on
//! its way to the database, or has an actor do things in the wrong order.

mod list;

use std::cell::Cell;

use swarm_domain::ports::Statement;

pub use list::all;

/// How a rule is taken away.
#[derive(Clone)]
pub enum Rule {
    /// In one statement, `from` becomes `to`.
    Rewrite {
        /// The statement.
        sql: &'static str,
        /// The text of the rule.
        from: String,
        /// What stands there instead.
        to: &'static str,
    },
    /// This statement is left out.
    Skip(&'static str),
    /// An actor or a port looks for the mutant's name and does it wrong.
    Order,
}

/// One rule taken away.
#[derive(Clone)]
pub struct Mutant {
    /// What is wrong with it.
    pub name: &'static str,
    /// How.
    pub rule: Rule,
    /// The checkers of which at least one must see it.
    pub caught_by: &'static [&'static str],
}

impl Mutant {
    /// Whether the rule that it takes away stands in the code at all.
    pub fn is_founded(&self) -> bool {
        match &self.rule {
            Rule::Rewrite { sql, from, .. } => sql.matches(from.as_str()).count() == 1,
            Rule::Skip(_) | Rule::Order => true,
        }
    }
}

/// A mutant at work in a world.
pub struct Mutation {
    mutant: Mutant,
    hits: Cell<u64>,
    rewritten: Cell<Option<&'static str>>,
}

/// What a statement that is left out becomes: it does nothing, and answers nothing.
const NOTHING: &str = "SELECT NULL WHERE false";

impl Mutation {
    /// Puts a mutant to work.
    pub fn new(mutant: Mutant) -> Self {
        Self { mutant, hits: Cell::new(0), rewritten: Cell::new(None) }
    }

    /// What is wrong.
    pub fn name(&self) -> &'static str {
        self.mutant.name
    }

    /// Whether this checker is one of those that must notice.
    pub fn is_caught_by(&self, checker: &str) -> bool {
        self.mutant.caught_by.contains(&checker)
    }

    /// How often it did wrong.
    pub fn hits(&self) -> u64 {
        self.hits.get()
    }

    /// Counts a deed of a mutant that is at work in an actor.
    pub fn hit(&self) {
        self.hits.set(self.hits.get() + 1);
    }

    /// The statements as the mutant lets them through.
    pub fn rewrite(&self, statements: Vec<Statement>) -> Vec<Statement> {
        statements.into_iter().map(|statement| self.rewrite_one(statement)).collect()
    }

    fn rewrite_one(&self, statement: Statement) -> Statement {
        match &self.mutant.rule {
            Rule::Skip(sql) if statement.sql == *sql => {
                self.hit();
                Statement::new(NOTHING, Vec::new())
            }
            Rule::Rewrite { sql, from, to } if statement.sql == *sql => {
                self.hit();
                Statement::new(self.text(sql, from, to), statement.values)
            }
            _ => statement,
        }
    }

    /// The rewritten text, made once per world: a statement's text lives as long as the program.
    fn text(&self, sql: &'static str, from: &str, to: &str) -> &'static str {
        let rewritten = self.rewritten.get();
        let rewritten = rewritten.unwrap_or_else(|| Box::leak(sql.replacen(from, to, 1).into_boxed_str()));
        self.rewritten.set(Some(rewritten));
        rewritten
    }
}
