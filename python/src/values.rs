//! Values of fields as objects of Python.

use etl_format::Guid;
use etl_schema::Field;
use etl_schema::decode::{Fields, Utf16, Value};
use etl_schema::render;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::decoding::Described;

/// Elements of the arrays of one payload: a payload of a few bytes can ask for far more.
const MAX_ELEMENTS: usize = 1 << 20;

/// The fields of a payload as a dict.
pub fn fields<'py>(
    py: Python<'py>,
    described: &Described,
    fields: Fields<'_>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let mut left = MAX_ELEMENTS;
    // Values come in the order of the fields.
    for ((field, value), name) in fields.zip(described.fields(py)) {
        dict.set_item(name, to_python(py, field, value, &mut left)?)?;
    }
    Ok(dict)
}

fn members<'py>(
    py: Python<'py>,
    fields: Fields<'_>,
    left: &mut usize,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (field, value) in fields {
        dict.set_item(&*field.name, to_python(py, field, value, left)?)?;
    }
    Ok(dict)
}

/// One value: numbers and addresses as `int`, text as `str`, bytes as `bytes`; GUIDs, SIDs, times
/// and network addresses as the text that JSON has for them.
fn to_python<'py>(
    py: Python<'py>,
    field: &Field,
    value: Value<'_>,
    left: &mut usize,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::UInt(number) | Value::Pointer(number) => number.into_pyobject(py)?.into_any(),
        Value::Int(number) => number.into_pyobject(py)?.into_any(),
        Value::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Value::Float(number) => f64::from(number).into_pyobject(py)?.into_any(),
        Value::Double(number) => number.into_pyobject(py)?.into_any(),
        Value::Utf16(units) => utf16(py, render::until_nul(field, units))?,
        Value::Char(unit) => utf16(py, Utf16::new(&unit.to_le_bytes()))?,
        Value::Ansi(bytes) | Value::Utf8(bytes) => eight_bits(py, field, bytes),
        Value::Binary(bytes) => PyBytes::new(py, bytes).into_any(),
        Value::Guid(guid) => self::guid(py, guid).into_any(),
        Value::Ipv4(address) => PyString::new(py, &address.to_string()).into_any(),
        Value::Ipv6(address) => PyString::new(py, &address.to_string()).into_any(),
        Value::FileTime(_) | Value::SystemTime(_) | Value::Sid(_) => {
            let mut text = Vec::new();
            match value {
                Value::FileTime(time) => render::filetime(&mut text, time),
                Value::SystemTime(time) => render::system_time(&mut text, time),
                Value::Sid(sid) => render::sid(&mut text, sid),
                _ => {}
            }
            PyString::new(py, &String::from_utf8_lossy(&text)).into_any()
        }
        Value::Struct(view) => members(py, view.fields(), left)?.into_any(),
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items.iter() {
                match left.checked_sub(1) {
                    Some(rest) => *left = rest,
                    None => break,
                }
                list.append(to_python(py, field, item, left)?)?;
            }
            list.into_any()
        }
        // Null, and kinds of values that are not known here.
        _ => py.None().into_bound(py),
    })
}

/// A GUID as text.
pub fn guid(py: Python<'_>, guid: Guid) -> Bound<'_, PyString> {
    PyString::new(
        py,
        std::str::from_utf8(&guid.to_ascii()).unwrap_or_default(),
    )
}

/// UTF-16; an unpaired surrogate stays one.
fn utf16<'py>(py: Python<'py>, text: Utf16<'_>) -> PyResult<Bound<'py, PyAny>> {
    let units = text.bytes().as_chunks::<2>().0;
    let mut out = String::with_capacity(units.len());
    if units.iter().all(|&[low, high]| high == 0 && low < 0x80) {
        out.extend(units.iter().map(|&[low, _]| char::from(low)));
        return Ok(PyString::new(py, &out).into_any());
    }
    for c in text.chars() {
        match c {
            Ok(c) => out.push(c),
            Err(_) => {
                let bytes: Vec<u8> = units.iter().flatten().copied().collect();
                let bytes = PyBytes::new(py, &bytes);
                return bytes.call_method1("decode", ("utf-16-le", "surrogatepass"));
            }
        }
    }
    Ok(PyString::new(py, &out).into_any())
}

/// Text of 8 bits: UTF-8, and other bytes as the characters U+0080 to U+00FF.
fn eight_bits<'py>(py: Python<'py>, field: &Field, bytes: &[u8]) -> Bound<'py, PyAny> {
    let mut out = String::with_capacity(bytes.len());
    for chunk in render::shown_bytes(field, bytes).utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|&byte| char::from(byte)));
    }
    PyString::new(py, &out).into_any()
}
