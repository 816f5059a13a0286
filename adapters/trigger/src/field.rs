//! Setting a field of a request's JSON body.

use serde_json::Value;
use swarm_verify::Outgoing;

/// Why a field cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The argument has another form.
    #[error("a field is POINTER=VALUE, such as /data/id=7, not '{0}'")]
    Form(String),
    /// The body has no fields.
    #[error("the body is a form and not JSON, so it has no such fields")]
    NotJson,
    /// The pointer leads nowhere.
    #[error("the body has no object for {0}")]
    NoObject(String),
}

/// The request with a field set, by `/pointer=value`; the value is JSON, or else text. The last part of the pointer may be new.
///
/// # Errors
/// [`FieldError`].
pub fn with_field(mut request: Outgoing, field: &str) -> Result<Outgoing, FieldError> {
    let form = || FieldError::Form(field.to_owned());
    let (pointer, value) = field.split_once('=').ok_or_else(form)?;
    let (parent, name) = pointer.rsplit_once('/').ok_or_else(form)?;
    let value: Value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    let mut body: Value = serde_json::from_slice(&request.body).map_err(|_| FieldError::NotJson)?;
    if let Some(place) = body.pointer_mut(pointer) {
        *place = value;
    } else {
        let object = body.pointer_mut(parent).and_then(Value::as_object_mut);
        object.ok_or_else(|| FieldError::NoObject(pointer.to_owned()))?.insert(name.to_owned(), value);
    }
    request.body = body.to_string().into_bytes();
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_set_or_added() {
        let set = |field| {
            let request = Outgoing::post("", "application/json", r#"{"a":{"b":[1,2]}}"#);
            with_field(request, field).map(|request| String::from_utf8(request.body).unwrap())
        };
        assert_eq!(set("/a/b/1=7").as_deref(), Ok(r#"{"a":{"b":[1,7]}}"#));
        assert_eq!(set("/a/c=x=y").as_deref(), Ok(r#"{"a":{"b":[1,2],"c":"x=y"}}"#));
        assert_eq!(set("/a=null").as_deref(), Ok(r#"{"a":null}"#));
        assert_eq!(set("a"), Err(FieldError::Form("a".to_owned())));
        assert_eq!(set("/x/y=1"), Err(FieldError::NoObject("/x/y".to_owned())));
        let form = with_field(Outgoing::post("", "", "a=b"), "/a=1");
        assert_eq!(form, Err(FieldError::NotJson));
    }
}
