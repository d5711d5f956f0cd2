//! Events of the JIT compiler other than methods: loaded types, memory, inlining, tail
//! calls, and background compilation.

use etl_schema::encode::OwnedValue;

use super::op::OpEffect;
use super::raise::Runtime;
use super::state::{Clr, CodeBody};
use crate::error::Result;
use crate::etw::values;
use crate::model::CodeKind;
use crate::time::MICROSECOND;
use etl_schema::clr::keyword;

/// Methods with at most this many bytes of IL are inlined.
const INLINED: u32 = 32;
/// The load level of a type when its methods can run.
const LOADED: u16 = 6;

/// FNV-1a hash of the name of a type, which identifies the type.
fn hash(text: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    }
    hash
}

impl Runtime<'_, '_> {
    /// A type is loaded before its first method runs (reported since .NET 5).
    pub fn load_type(&mut self, index: usize) -> Result<()> {
        let Some(method) = self.clr.program_method(index) else {
            return Ok(());
        };
        let name = method.namespace.clone();
        let id = self.clr.id_of_type(&method.namespace);
        if !self.clr.types.insert(hash(&name)) {
            return Ok(());
        }
        let number = self.clr.types.len() as u32;
        self.raise(73, 0, &values![number, self.clr.instance])?;
        self.raise(74, 0, &values![number, self.clr.instance, LOADED, id, name])
    }

    /// The type of a method, and its type arguments, if the load of the method is `wanted`.
    pub fn emit_details(&mut self, index: usize, wanted: bool) -> Result<()> {
        let Some(method) = self.clr.program_method(index) else {
            return Ok(());
        };
        if !wanted || !self.asked().raises(4, keyword::METHOD_DIAGNOSTIC) {
            return self.skip(false, 72, 0);
        }
        let owner_type = self.clr.id_of_type(&method.namespace);
        let over = method
            .generic
            .then(|| self.clr.id_of_type("System.__Canon").into());
        let over: Vec<OwnedValue> = over.into_iter().collect();
        let count = over.len() as u32;
        let module = self.clr.module_id(method);
        let values = values![
            method.id,
            owner_type,
            method.token,
            count,
            module,
            OwnedValue::Array(over)
        ];
        self.raise(72, 0, &values)
    }

    /// Memory for compiled code (reported since .NET 5).
    pub fn emit_memory(&mut self, index: usize, body: &CodeBody) -> Result<()> {
        let Some(method) = self.clr.program_method(index) else {
            return Ok(());
        };
        let hot = u64::from(body.size);
        let instance = self.clr.instance;
        let all = (hot + 16).next_multiple_of(16);
        let module = self.clr.module_id(method);
        let values = values![method.id, module, hot, 0u64, all, 0u32, instance];
        self.raise(146, 0, &values)
    }

    /// The entry point of precompiled code is looked up (reported since .NET Core 3).
    pub fn emit_entry(&mut self, index: usize, body: &CodeBody) -> Result<()> {
        let Some(method) = self.clr.methods.get(index) else {
            return Ok(());
        };
        let id = method.id;
        let instance = self.clr.instance;
        let [namespace, name, signature] = method.names();
        self.raise(160, 0, &values![id, instance])?;
        let values = values![id, namespace, name, signature, body.start, instance];
        self.raise(159, 0, &values)
    }

    /// Inlining and tail calls: the next method of the module is inlined if it is small enough, and
    /// some calls at the end of a method become jumps.
    pub fn emit_calls(&mut self, index: usize) -> Result<()> {
        let asked = self.asked().raises(5, keyword::JIT_TRACING);
        let Some(method) = self.clr.program_method(index) else {
            return Ok(());
        };
        let Some(callee) = self.clr.methods.get(index + 1) else {
            return Ok(());
        };
        if callee.module != method.module || callee.kind == CodeKind::Helper {
            return Ok(());
        }
        let core = self.clr.is_core(0);
        let who = match asked {
            true => [method.names(), method.names(), callee.names()].concat(),
            false => Vec::new(),
        };
        let inlined = callee.il_size <= INLINED;
        let token = method.token;
        let (id, why) = if inlined {
            (185, Vec::new())
        } else {
            let why = values![false, self.reason("too many bytes of IL")];
            (if core { 192 } else { 186 }, why.into())
        };
        let jump = match token % 4 {
            0 => Some((188, values![false, 0u32].into())),
            1 => {
                let why = values![false, self.reason("the caller has pinned locals")];
                Some((if core { 191 } else { 189 }, why.into()))
            }
            _ => None,
        };
        for (id, why) in [Some((id, why)), jump].into_iter().flatten() {
            if !asked {
                self.skip(false, id, 0)?;
                continue;
            }
            self.raise(
                id,
                0,
                &[who.clone(), why, vec![self.clr.instance.into()]].concat(),
            )?;
        }
        Ok(())
    }

    /// Why a call was not inlined or is not a jump. .NET Framework writes it as ANSI text, in
    /// events with other ids.
    fn reason(&self, text: &str) -> OwnedValue {
        if self.clr.is_core(0) {
            OwnedValue::from(text)
        } else {
            OwnedValue::Ansi(text.as_bytes().to_vec())
        }
    }

    /// A method was compiled without optimization: tier 1 waits until there are no more of these.
    pub fn note_quick(&mut self) -> Result<()> {
        let reported = self.clr.tiering_waits.is_some();
        self.clr.tiering_waits = Some(self.clr.tiering_waits.unwrap_or(0).saturating_add(1));
        if reported {
            Ok(())
        } else {
            self.raise(281, 0, &values![self.clr.instance])
        }
    }

    /// Background compilation starts.
    pub fn tier_begin(&mut self, count: u32) -> Result<OpEffect> {
        if let Some(new) = self.clr.tiering_waits.take() {
            self.raise(282, 0, &values![self.clr.instance, new])?;
        }
        self.raise(283, 0, &values![self.clr.instance, count])?;
        Ok(OpEffect::after(5 * MICROSECOND))
    }

    /// Background compilation ends.
    pub fn tier_end(&mut self, count: u32) -> Result<OpEffect> {
        let left = match self.clr.tiering.counts_calls {
            true => self.clr.tiering.waiting(),
            false => self.clr.quick.len() as u32,
        };
        self.raise(284, 0, &values![self.clr.instance, left, count])?;
        Ok(OpEffect::after(MICROSECOND))
    }
}

impl Clr {
    fn id_of_type(&self, name: &str) -> u64 {
        self.domains.first().map_or(0, |d| d.id) + 0x80_0000 + (hash(name) % 0x10_0000) * 8
    }
}
