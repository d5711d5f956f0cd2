//! Events of the JIT compiler besides those of methods: loaded types, memory, inlining, tail
//! calls, and background compilation.

use etl_schema::encode::OwnedValue;

use super::op::OpEffect;
use super::raise::Context;
use super::state::{Clr, CodeBody, Method};
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
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

impl Clr {
    fn id_of_type(&self, name: &str) -> u64 {
        self.domains.first().map_or(0, |d| d.id) + 0x80_0000 + (hash(name) % 0x10_0000) * 8
    }

    /// A type is loaded before its first method runs (reported since .NET 5).
    pub fn load_type(&mut self, index: usize, ctx: &mut Context<'_, '_>) -> Result<()> {
        if !self.is_core(5) {
            return Ok(());
        }
        let Some(method) = self.methods.get(index).filter(|m| m.kind != CodeKind::Helper) else {
            return Ok(());
        };
        if !self.types.insert(hash(&method.namespace)) {
            return Ok(());
        }
        if !self.asked(ctx).raises(4, keyword::TYPE_DIAGNOSTIC) {
            return Ok(());
        }
        let (name, number) = (method.namespace.clone(), self.types.len() as u32);
        self.raise(73, 0, &values![number, self.instance], ctx)?;
        let id = self.id_of_type(&name);
        self.raise(74, 0, &values![number, self.instance, LOADED, id, name], ctx)
    }

    /// The type of a method, and its type arguments.
    pub fn emit_details(&mut self, index: usize, ctx: &mut Context<'_, '_>) -> Result<()> {
        if !self.is_core(5) || !self.asked(ctx).raises(4, keyword::METHOD_DIAGNOSTIC) {
            return Ok(());
        }
        let Some(method) = self.methods.get(index).filter(|m| m.kind != CodeKind::Helper) else {
            return Ok(());
        };
        let of = self.id_of_type(&method.namespace);
        let over: Vec<OwnedValue> = if method.generic {
            vec![self.id_of_type("System.__Canon").into()]
        } else {
            Vec::new()
        };
        let (count, module) = (over.len() as u32, self.module_id(method));
        let values = values![method.id, of, method.token, count, module, OwnedValue::Array(over)];
        self.raise(72, 0, &values, ctx)
    }

    /// Memory for compiled code (reported since .NET 5).
    pub fn emit_memory(
        &mut self,
        index: usize,
        body: &CodeBody,
        ctx: &mut Context<'_, '_>,
    ) -> Result<()> {
        let Some(method) = self.methods.get(index).filter(|_| self.is_core(5)) else {
            return Ok(());
        };
        let hot = u64::from(body.size);
        let all = (hot + 16).next_multiple_of(16);
        let values =
            values![method.id, self.module_id(method), hot, 0u64, all, 0u32, self.instance];
        self.raise(146, 0, &values, ctx)
    }

    /// The entry point of precompiled code is looked up (reported since .NET Core 3).
    pub fn emit_entry(
        &mut self,
        index: usize,
        body: &CodeBody,
        ctx: &mut Context<'_, '_>,
    ) -> Result<()> {
        if !self.is_core(3) || !self.asked(ctx).raises(4, keyword::COMPILATION_DIAGNOSTIC) {
            return Ok(());
        }
        let Some(method) = self.methods.get(index) else { return Ok(()) };
        if self.is_core(5) {
            self.raise(160, 0, &values![method.id, self.instance], ctx)?;
        }
        let [namespace, name, signature] = method.names();
        let values = values![method.id, namespace, name, signature, body.start, self.instance];
        self.raise(159, 0, &values, ctx)
    }

    /// Inlining and tail calls: the next method of the module is inlined if it is small enough, and
    /// some calls at the end of a method become jumps.
    pub fn emit_calls(&mut self, index: usize, ctx: &mut Context<'_, '_>) -> Result<()> {
        if !self.asked(ctx).raises(5, keyword::JIT_TRACING) {
            return Ok(());
        }
        let Some(method) = self.methods.get(index).filter(|m| m.kind != CodeKind::Helper) else {
            return Ok(());
        };
        let same = |m: &&Method| m.module == method.module && m.kind != CodeKind::Helper;
        let Some(callee) = self.methods.get(index + 1).filter(same) else { return Ok(()) };
        let core = self.is_core(0);
        // .NET Framework writes the reason as ANSI text, under other ids.
        let reason = |text: &str| match core {
            true => OwnedValue::from(text),
            false => OwnedValue::Ansi(text.as_bytes().to_vec()),
        };
        let who: Vec<OwnedValue> =
            [method.names(), method.names(), callee.names()].into_iter().flatten().collect();
        let emit = |id: u16, more: Vec<OwnedValue>, ctx: &mut Context<'_, '_>| {
            let instance = OwnedValue::from(self.instance);
            let values: Vec<_> = who.iter().cloned().chain(more).chain([instance]).collect();
            self.raise(id, 0, &values, ctx)
        };
        if callee.il_size <= INLINED {
            emit(185, Vec::new(), ctx)?;
        } else {
            let why = values![false, reason("too many bytes of IL")].into();
            emit(if core { 192 } else { 186 }, why, ctx)?;
        }
        match method.token % 4 {
            0 => emit(188, values![false, 0u32].into(), ctx),
            1 => {
                let why = values![false, reason("the caller has pinned locals")].into();
                emit(if core { 191 } else { 189 }, why, ctx)
            }
            _ => Ok(()),
        }
    }

    /// A method was compiled without optimization: tier 1 waits until there are no more of these.
    pub fn note_quick(&mut self, ctx: &mut Context<'_, '_>) -> Result<()> {
        let reported = self.tiering_waits.is_some();
        self.tiering_waits = Some(self.tiering_waits.unwrap_or(0).saturating_add(1));
        if reported { Ok(()) } else { self.raise(281, 0, &values![self.instance], ctx) }
    }

    /// Background compilation starts.
    pub fn tier_begin(&mut self, count: u32, ctx: &mut Context<'_, '_>) -> Result<OpEffect> {
        if let Some(new) = self.tiering_waits.take() {
            self.raise(282, 0, &values![self.instance, new], ctx)?;
        }
        self.raise(283, 0, &values![self.instance, count], ctx)?;
        Ok(OpEffect::after(5 * MICROSECOND))
    }

    /// Background compilation ends.
    pub fn tier_end(&mut self, count: u32, ctx: &mut Context<'_, '_>) -> Result<OpEffect> {
        let left = self.quick.len() as u32;
        self.raise(284, 0, &values![self.instance, left, count], ctx)?;
        Ok(OpEffect::after(MICROSECOND))
    }
}
