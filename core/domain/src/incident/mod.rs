//! Incidents: dispatches that failed for good and messages that nobody could read, kept until an operator closes them.

mod error;
mod filter;
mod list;
mod operations;
mod record;
mod report;
mod state;
mod view;

pub use error::{NotReplayable, OperationError};
pub use filter::{Filter, FilterInput};
pub use list::{IncidentPage, LIST_BY_STATUS, LIST_BY_TENANT};
pub use operations::{FIND, IGNORE, LOG_DECISION, Operation, Operations, READ_DECIDED, TRIAGE};
pub use record::{Incident, IncidentDetails, LogEntry};
pub use report::{
    ForeignReport, Kind, REPORT, REPORT_FOREIGN, Report, foreign_id, incident_id, incident_id_of, report,
    report_foreign,
};
pub use state::{IllegalIncidentMove, IncidentEvent, IncidentState, sql_incident_after, sql_incident_before};
pub use view::{READ_LOG, VIEW};

pub(crate) use filter::{checked, moment, parse_topic};
pub(crate) use list::{REST_OF_FILTER, lower_bound, rest_of_filter, walks};
pub(crate) use operations::{Applied, find, in_every_shard};
pub(crate) use record::{COLUMNS, rfc3339, rfc3339_if_any, rows_of_two};
