use super::*;

#[test]
fn tables_fit_the_binary() {
    assert!(DATA.len() <= 1_200_000, "{} bytes", DATA.len());
}

/// The figures of the facts from which the tables were made.
#[test]
fn nothing_is_lost() {
    let text = unpack();
    let count = |word: &str| {
        text.lines()
            .filter(|l| l.trim_start().starts_with(word))
            .count()
    };
    let described = all().iter().filter(|p| p.event_count() > 0).count();
    assert_eq!((all().len(), described), (1_513, 1_072));
    assert_eq!(
        (count("event "), count("other "), count("type ")),
        (73_203, 1_922, 929)
    );
    assert_eq!(count("values ") + count("bits "), 1_113);
    assert_eq!(all().iter().map(|p| p.event_count()).sum::<u32>(), 73_203);
}

#[test]
fn packing_what_was_unpacked_returns_the_same_bytes() {
    assert!(pack(&unpack()).unwrap() == DATA);
}

#[test]
fn find_returns_every_provider() {
    for provider in all() {
        let found = find(provider.guid()).unwrap();
        assert_eq!(found.name(), provider.name());
        let line = provider.table().lines().next().unwrap();
        let name = line.split(' ').nth(1).unwrap().replace("%20", " ");
        assert_eq!(name, provider.name());
    }
    assert!(find([0; 16]).is_none());
}

#[test]
fn pack_names_the_line_that_it_cannot_keep() {
    let table = "provider A 5a5a5a5a-5a5a-5a5a-5a5a-5a5a5a5a5a5a\nevent 1 0 One\n";
    let packed = |rest: &str| pack(&format!("{table}{rest}")).map(|_| ());
    assert_eq!(
        packed("  level 4\n  field A UInt32\n    field B UInt8 count 3\n"),
        Ok(())
    );
    let error = |line, what: &str| {
        Err(PackError {
            line,
            what: what.to_owned(),
        })
    };
    assert_eq!(
        packed("  level 4\n  task 1 A\n"),
        error(3, "would be unpacked as:   task 1 A")
    );
    assert_eq!(
        packed("event one 0 Two\n"),
        error(3, "expected `event ID VERSION SYMBOL`")
    );
    assert_eq!(packed("\nprovider B 12\n"), error(4, "not a GUID"));
}

/// Data that is not an archive, or a truncated archive, has no tables and causes no panic.
#[test]
fn damaged_data_has_no_tables() {
    assert!(Archive::open(b"something else").is_none());
    for end in [0, 8, 12, 100, 5_000, DATA.len() - 1] {
        assert!(Archive::open(&DATA[..end]).is_none());
    }
    let archive = Archive::open(DATA).unwrap();
    assert!(archive.block(archive.block_count()).is_none());
}
