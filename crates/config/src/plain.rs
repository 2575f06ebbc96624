//! The quick way through a text that is in order, which nearly every text is.
//!
//! What was parsed is held against the types where it lies, without a copy, and a key that no type
//! asks for is noticed. Whatever is odd in any way is left to the slow way, which finds out what it is
//! and how to say it. This file refuses to know: it says yes, or nothing.

use crate::settings::Settings;
use serde::de::value::{Error, StrDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer as _, MapAccess,
    SeqAccess, Visitor,
};
use serde::{Deserialize as _, forward_to_deserialize_any};
use std::cell::Cell;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

/// The settings in a table, if it holds nothing else.
pub(crate) fn settings(table: &DeTable<'_>) -> Option<Settings> {
    let unknown = Cell::new(false);
    let settings = Settings::deserialize(Place { value: Held::Table(table), unknown: &unknown });
    settings.ok().filter(|_| !unknown.get())
}

/// A table without the places in the text; none if something in it is no value of any setting.
pub(crate) fn table(parsed: DeTable<'_>) -> Option<Table> {
    let entry = |(name, held): (Spanned<std::borrow::Cow<'_, str>>, Spanned<DeValue<'_>>)| {
        Some((name.into_inner().into_owned(), value(held.into_inner())?))
    };
    parsed.into_iter().map(entry).collect()
}

fn value(parsed: DeValue<'_>) -> Option<Value> {
    Some(match parsed {
        DeValue::String(text) => Value::String(text.into_owned()),
        DeValue::Boolean(is) => Value::Boolean(is),
        DeValue::Table(parsed) => Value::Table(table(parsed)?),
        DeValue::Array(items) => {
            let items = items.into_iter().map(|item| value(item.into_inner()));
            Value::Array(items.collect::<Option<_>>()?)
        }
        DeValue::Integer(number) => {
            Value::Integer(i64::from_str_radix(number.as_str(), number.radix()).ok()?)
        }
        DeValue::Float(number) => {
            Value::Float(number.as_str().parse().ok().filter(|number: &f64| number.is_finite())?)
        }
        DeValue::Datetime(_) => return None,
    })
}

/// Something that was parsed.
#[derive(Clone, Copy)]
enum Held<'a> {
    Table(&'a DeTable<'a>),
    Value(&'a DeValue<'a>),
}

/// Where a type reads. Notes when what is there is skipped.
#[derive(Clone, Copy)]
struct Place<'a> {
    value: Held<'a>,
    unknown: &'a Cell<bool>,
}

impl<'de> Deserializer<'de> for Place<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let unknown = self.unknown;
        let table = |table: &'de DeTable<'de>, visitor: V| {
            visitor.visit_map(Entries { entries: table.iter(), value: None, unknown })
        };
        match self.value {
            Held::Table(held) | Held::Value(DeValue::Table(held)) => table(held, visitor),
            Held::Value(DeValue::Array(items)) => {
                visitor.visit_seq(Items { items: items.iter(), unknown })
            }
            Held::Value(DeValue::String(text)) => visitor.visit_borrowed_str(text),
            Held::Value(DeValue::Boolean(is)) => visitor.visit_bool(*is),
            Held::Value(DeValue::Integer(number)) => {
                let number = i64::from_str_radix(number.as_str(), number.radix());
                visitor.visit_i64(number.map_err(Error::custom)?)
            }
            Held::Value(DeValue::Float(number)) => {
                visitor.visit_f64(number.as_str().parse().map_err(Error::custom)?)
            }
            Held::Value(DeValue::Datetime(_)) => Err(Error::custom("no setting is a date")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.value {
            Held::Value(DeValue::String(word)) => visitor.visit_enum(Word(word)),
            _ => Err(Error::custom("a choice is a word")),
        }
    }

    /// A type with named fields would take a list of their values too.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.value {
            Held::Table(_) | Held::Value(DeValue::Table(_)) => self.deserialize_any(visitor),
            Held::Value(_) => Err(Error::custom("this is no table")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.unknown.set(true);
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier
    }
}

/// One word of several.
struct Word<'de>(&'de str);

impl<'de> EnumAccess<'de> for Word<'de> {
    type Error = Error;
    type Variant = <StrDeserializer<'de, Error> as EnumAccess<'de>>::Variant;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), Error> {
        let word: StrDeserializer<'de, Error> = self.0.into_deserializer();
        word.variant_seed(seed)
    }
}

struct Items<'de, I> {
    items: I,
    unknown: &'de Cell<bool>,
}

impl<'de, I: Iterator<Item = &'de Spanned<DeValue<'de>>>> SeqAccess<'de> for Items<'de, I> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let unknown = self.unknown;
        let place = |item: &'de Spanned<DeValue<'de>>| Place {
            value: Held::Value(item.get_ref()),
            unknown,
        };
        self.items.next().map(|item| seed.deserialize(place(item))).transpose()
    }
}

struct Entries<'de, I> {
    entries: I,
    value: Option<&'de DeValue<'de>>,
    unknown: &'de Cell<bool>,
}

impl<'de, I> MapAccess<'de> for Entries<'de, I>
where
    I: Iterator<Item = (&'de Spanned<std::borrow::Cow<'de, str>>, &'de Spanned<DeValue<'de>>)>,
{
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let Some((name, value)) = self.entries.next() else { return Ok(None) };
        self.value = Some(value.get_ref());
        let name: StrDeserializer<'de, Error> = name.get_ref().as_ref().into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let value = self.value.take().ok_or_else(|| Error::custom("a value without a name"))?;
        seed.deserialize(Place { value: Held::Value(value), unknown: self.unknown })
    }
}
