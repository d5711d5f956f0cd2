use super::*;

/// A blob under construction: properties first, names after them.
struct Blob {
    header: Vec<u8>,
    properties: Vec<[u8; PROPERTY]>,
    names: Vec<u8>,
    names_at: usize,
}

impl Blob {
    fn new(properties: usize, top: u32) -> Self {
        let mut header = vec![0; HEADER];
        header[..16].copy_from_slice(&[7; 16]);
        header[0x20] = 5;
        header[0x22] = 2;
        header[0x64..0x68].copy_from_slice(&(properties as u32).to_le_bytes());
        header[0x68..0x6c].copy_from_slice(&top.to_le_bytes());
        let names_at = HEADER + properties * PROPERTY;
        Blob {
            header,
            properties: vec![],
            names: vec![],
            names_at,
        }
    }

    fn name(&mut self, text: &str) -> u32 {
        let at = self.names_at + self.names.len();
        self.names
            .extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        at as u32
    }

    fn property(
        &mut self,
        flags: u32,
        name: &str,
        words: [u16; 2],
        map: u32,
        count: u16,
        len: u16,
    ) {
        let name = self.name(name);
        let mut p = [0; PROPERTY];
        p[0..4].copy_from_slice(&flags.to_le_bytes());
        p[4..8].copy_from_slice(&name.to_le_bytes());
        p[8..10].copy_from_slice(&words[0].to_le_bytes());
        p[10..12].copy_from_slice(&words[1].to_le_bytes());
        p[12..16].copy_from_slice(&map.to_le_bytes());
        p[16..18].copy_from_slice(&count.to_le_bytes());
        p[18..20].copy_from_slice(&len.to_le_bytes());
        self.properties.push(p);
    }

    fn bytes(&self) -> Vec<u8> {
        [
            &self.header[..],
            self.properties.concat().as_slice(),
            &self.names,
        ]
        .concat()
    }
}

fn sample() -> Vec<u8> {
    let mut blob = Blob::new(5, 3);
    let provider = blob.name("Some-Provider");
    blob.header[0x34..0x38].copy_from_slice(&provider.to_le_bytes());
    let task = blob.name("Work ");
    blob.header[0x44..0x48].copy_from_slice(&task.to_le_bytes());
    let map = blob.name("Colors ");
    blob.property(0, "Count", [6, 0], map, 1, 2);
    blob.property(1 | 4, "Items", [3, 2], 0, 0, 0);
    blob.property(0, "Text", [1, 0], 0, 1, 4);
    blob.property(0, "Len", [8, 0], 0, 1, 4);
    blob.property(2, "Data", [14, 0], 0, 1, 3);
    blob.bytes()
}

#[test]
fn parse_resolves_structs_counts_and_lengths() {
    let mut schema = parse(&sample(), &Maps::default()).unwrap();
    assert_eq!(schema.provider_name, "Some-Provider");
    assert_eq!(schema.name, "Work");
    assert_eq!(schema.identity, Identity::Modern { id: 5, version: 2 });
    let [count, items, text] = &schema.fields[..] else {
        panic!("{:?}", schema.fields)
    };
    assert_eq!(count.in_type(), Some(InType::UInt16));
    assert_eq!(items.count, Count::Field(FieldRef::Here(0)));
    let FieldKind::Struct(members) = &items.kind else {
        panic!()
    };
    assert_eq!(members[1].length, Length::Field(FieldRef::Here(0)));
    assert_eq!(text.length, Length::Fixed(4));

    assert!(
        schema.fields[0]
            .map
            .as_ref()
            .is_some_and(|m| m.entries().is_empty())
    );
    let entries = vec![MapEntry {
        value: 1,
        name: "red".into(),
    }];
    attach(
        &mut schema,
        &Arc::new(ValueMap::new("Colors", MapKind::Values, entries)),
    );
    assert_eq!(
        schema.fields[0].map.as_ref().and_then(|m| m.get(1)),
        Some("red")
    );
}

#[test]
fn add_reads_maps_that_parse_finds() {
    let mut blob = vec![7; 16];
    let mut map = vec![0; 16 + 2 * 8];
    let mut put = |at: usize, v: u32| map[at..at + 4].copy_from_slice(&v.to_le_bytes());
    put(0, 32);
    put(4, 2);
    put(8, 2);
    put(16, 48);
    put(20, 1);
    put(24, 56);
    put(28, 4);
    map.extend(
        "Colors \0ab \0cd\0"
            .encode_utf16()
            .flat_map(u16::to_le_bytes),
    );
    blob.extend(map);
    let mut maps = Maps::default();
    let map = maps.add(&blob).unwrap().map;
    assert_eq!(map.kind(), MapKind::Bits);
    assert_eq!(map.bits(5).collect::<Vec<_>>(), ["ab", "cd"]);
    let schema = parse(&sample(), &maps).unwrap();
    assert!(
        schema.fields[0]
            .map
            .as_ref()
            .is_some_and(|m| !m.entries().is_empty())
    );
}

/// A map from MOF may give its values as text.
#[test]
fn add_reads_mof_maps_with_values_in_text() {
    let mut record = vec![7; 16];
    let mut map = vec![0; 16 + 3 * 8];
    let mut put = |at: usize, v: u32| map[at..at + 4].copy_from_slice(&v.to_le_bytes());
    // Its name, that it is of MOF, three entries, values in text; then each name and value.
    for (at, value) in [(0, 40), (4, 8), (8, 3), (12, 1)] {
        put(at, value);
    }
    for (entry, (output, input)) in [(44, 48), (52, 56), (44, 66)].into_iter().enumerate() {
        put(16 + entry * 8, output);
        put(20 + entry * 8, input);
    }
    map.extend(
        "M\0A\u{0}7\u{0}B\u{0}0x1F\0?\0"
            .encode_utf16()
            .flat_map(u16::to_le_bytes),
    );
    record.extend(map);
    let map = Maps::default().add(&record).unwrap().map;
    assert_eq!((map.name(), map.kind()), ("M", MapKind::Values));
    assert_eq!((map.get(7), map.get(0x1f)), (Some("A"), Some("B")));
    assert_eq!(
        map.entries().len(),
        2,
        "entries that are not numbers are left out"
    );
}

#[test]
fn parse_refuses_cut_and_hostile_blobs() {
    let whole = sample();
    for len in 0..HEADER + 5 * PROPERTY {
        assert!(parse(&whole[..len], &Maps::default()).is_err(), "{len}");
    }
    // A struct that is its own member.
    let mut blob = Blob::new(2, 1);
    blob.property(1, "a", [0, 2], 0, 1, 0);
    blob.property(1, "b", [0, 2], 0, 1, 0);
    assert_eq!(
        parse(&blob.bytes(), &Maps::default()),
        Err(crate::Error::InfoTooBig)
    );
    let mut blob = Blob::new(1, 1);
    blob.property(0, "a", [299, 0], 0, 1, 0);
    assert_eq!(
        parse(&blob.bytes(), &Maps::default()),
        Err(crate::Error::UnknownType(299))
    );
}
