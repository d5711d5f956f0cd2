//! The local time of a machine, from the time zone in the header of a trace.

use etl_format::constants::FILETIME_UNIX_EPOCH;
use etl_format::{FileTime, TimeZone};
use jiff::civil::{Date, DateTime, Weekday};
use jiff::{SignedDuration, Timestamp};

/// Names of time zones start with this if they are texts of a resource file: the number follows.
const RESOURCE: &str = "@tzres.dll,-";

/// The first names of the zones without a country. Each has ten numbers.
const FIRST_WEST: u32 = 1150;
const FIRST_EAST: u32 = 1270;
const END_OF_EAST: u32 = 1400;

/// The numbers of the names of standard times in `tzres.dll`, in the order of these numbers; the
/// name of the daylight saving time of the zone has the number before. Without `*`, the rest of the
/// name is ` Standard Time`.
const NAMES: &[(u32, &str)] = &[
    (12, "Azores"),
    (22, "Cape Verde"),
    (32, "Mid-Atlantic"),
    (42, "E. South America"),
    (52, "Greenland"),
    (62, "SA Eastern"),
    (72, "Newfoundland"),
    (82, "Atlantic"),
    (92, "Pacific SA"),
    (102, "SA Western"),
    (105, "Central Brazilian"),
    (112, "Eastern"),
    (122, "SA Pacific"),
    (132, "US Eastern"),
    (142, "Canada Central"),
    (152, "Central America"),
    (162, "Central"),
    (172, "Central * Time (Mexico)"),
    (182, "Mountain * Time (Mexico)"),
    (192, "Mountain"),
    (202, "US Mountain"),
    (212, "Pacific"),
    (215, "Pacific * Time (Mexico)"),
    (222, "Alaskan"),
    (232, "Hawaiian"),
    (242, "Samoa"),
    (252, "Dateline"),
    (262, "GMT"),
    (272, "Greenwich"),
    (282, "Central Europe"),
    (292, "Central European"),
    (302, "Romance"),
    (312, "W. Central Africa"),
    (322, "W. Europe"),
    (332, "E. Europe"),
    (335, "Jordan"),
    (342, "Egypt"),
    (352, "FLE"),
    (362, "GTB"),
    (365, "Middle East"),
    (372, "Jerusalem"),
    (382, "South Africa"),
    (385, "Namibia"),
    (392, "Arab"),
    (402, "Arabic"),
    (412, "E. Africa"),
    (422, "Russian"),
    (432, "Iran"),
    (435, "Georgian"),
    (442, "Arabian"),
    (449, "Azerbaijan"),
    (452, "Caucasus"),
    (462, "Afghanistan"),
    (472, "Ekaterinburg"),
    (482, "West Asia"),
    (492, "India"),
    (502, "Nepal"),
    (512, "Central Asia"),
    (522, "N. Central Asia"),
    (532, "Sri Lanka"),
    (542, "Myanmar"),
    (552, "North Asia"),
    (562, "SE Asia"),
    (572, "China"),
    (582, "North Asia East"),
    (592, "Malay Peninsula"),
    (602, "Taipei"),
    (612, "W. Australia"),
    (622, "Korea"),
    (632, "Tokyo"),
    (642, "Yakutsk"),
    (652, "AUS Central"),
    (662, "Cen. Australia"),
    (672, "AUS Eastern"),
    (682, "E. Australia"),
    (692, "Tasmania"),
    (702, "Vladivostok"),
    (712, "West Pacific"),
    (722, "Central Pacific"),
    (732, "Fiji"),
    (742, "New Zealand"),
    (752, "Tonga"),
    (772, "Montevideo"),
    (792, "SA Western"),
    (812, "Venezuela"),
    (832, "SA Eastern"),
    (842, "Argentina"),
    (872, "Pakistan"),
    (892, "Morocco"),
    (912, "Mauritius"),
    (962, "Paraguay"),
    (982, "Kamchatka"),
    (1022, "Bangladesh"),
    (1042, "Ulaanbaatar"),
    (1062, "North Pacific"),
    (1412, "Syria"),
    (1472, "Magadan"),
    (1502, "Turkey"),
    (1602, "Kaliningrad"),
    (1662, "Bahia"),
    (1722, "Libya"),
    (1802, "Line Islands"),
    (1822, "Russia TZ 1"),
    (1832, "Russia TZ 2"),
    (1842, "Russia TZ 4"),
    (1852, "Russia TZ 5"),
    (1862, "Russia TZ 6"),
    (1872, "Russia TZ 7"),
    (1882, "Russia TZ 8"),
    (1892, "Russia TZ 3"),
    (1912, "Russia TZ 10"),
    (1932, "Russia TZ 11"),
    (1952, "Russia TZ 9"),
    (1972, "Belarus"),
    (2002, "Cabo Verde"),
    (2042, "Eastern * Time (Mexico)"),
    (2062, "North Korea"),
    (2142, "Transbaikal"),
    (2162, "Altai"),
    (2182, "Astrakhan"),
    (2322, "Sakhalin"),
    (2342, "Haiti"),
    (2372, "Easter Island"),
    (2392, "Aleutian"),
    (2412, "Marquesas"),
    (2432, "Cuba"),
    (2452, "Saint Pierre"),
    (2472, "West Bank Gaza"),
    (2492, "Aus Central W."),
    (2512, "Lord Howe"),
    (2532, "Chatham Islands"),
    (2552, "W. Mongolia"),
    (2572, "Turks and Caicos"),
    (2592, "Tocantins"),
    (2612, "Bougainville"),
    (2632, "Norfolk"),
    (2752, "Tomsk"),
    (2772, "Omsk"),
    (2792, "Novosibirsk"),
    (2842, "Saratov"),
    (2872, "Magallanes"),
    (2892, "Sudan"),
    (2942, "Sao Tome"),
    (2992, "Volgograd"),
    (3052, "Qyzylorda"),
    (3082, "Yukon"),
    (3142, "South Sudan"),
];

/// The local time at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocalTime {
    /// The name of standard time, or of daylight saving time; empty if the header has none.
    pub name: String,
    /// Minutes by which it is ahead of UTC.
    pub offset_minutes: i32,
}

impl LocalTime {
    /// The local time of a zone at a time. UTC is local time plus the bias of the zone, plus the
    /// bias of daylight saving time while that is in force.
    pub fn at(zone: &TimeZone, time: FileTime) -> Self {
        let bias_in_standard_time = zone.bias.saturating_add(zone.standard_bias);
        let bias_in_daylight_time = zone.bias.saturating_add(zone.daylight_bias);
        if is_daylight(zone, time) == Some(true) {
            return LocalTime {
                name: name(&zone.daylight_name()),
                offset_minutes: bias_in_daylight_time.saturating_neg(),
            };
        }
        LocalTime {
            name: name(&zone.standard_name()),
            offset_minutes: bias_in_standard_time.saturating_neg(),
        }
    }
}

/// The name of a standard time or of a daylight saving time. The name of an unknown number is
/// returned as it is.
pub(crate) fn name(stated: &str) -> String {
    let number = stated.strip_prefix(RESOURCE).and_then(|n| n.parse().ok());
    let known = number.and_then(name_of_number);
    known.unwrap_or_else(|| stated.to_owned())
}

fn name_of_number(number: u32) -> Option<String> {
    if matches!(number, 931 | 932) {
        return Some("Coordinated Universal Time".to_owned());
    }
    if (FIRST_WEST..END_OF_EAST).contains(&number) && matches!(number % 10, 1 | 2) {
        let (sign, first) = if number < FIRST_EAST {
            ('-', FIRST_WEST)
        } else {
            ('+', FIRST_EAST)
        };
        return Some(format!("UTC{sign}{:02}", (number - first) / 10 + 1));
    }
    let index = NAMES.partition_point(|&(standard, _)| standard < number);
    let &(standard, zone) = NAMES.get(index)?;
    let kind = match standard - number {
        0 => "Standard",
        1 => "Daylight",
        _ => return None,
    };
    Some(if zone.contains('*') {
        zone.replace('*', kind)
    } else {
        format!("{zone} {kind} Time")
    })
}

/// Whether daylight saving time is in force; `None` if the header does not state when it is.
fn is_daylight(zone: &TimeZone, time: FileTime) -> Option<bool> {
    let now = utc(time)?;
    let standard_bias = zone.bias.checked_add(zone.standard_bias)?;
    let daylight_bias = zone.bias.checked_add(zone.daylight_bias)?;
    let year = now.checked_sub(minutes(standard_bias)).ok()?.year();
    // Each begins by the clock that was in force before.
    let daylight = begin(&zone.daylight_date, year)?;
    let daylight = daylight.checked_add(minutes(standard_bias)).ok()?;
    let standard = begin(&zone.standard_date, year)?;
    let standard = standard.checked_add(minutes(daylight_bias)).ok()?;
    Some(if daylight < standard {
        (daylight..standard).contains(&now)
    } else {
        !(standard..daylight).contains(&now)
    })
}

fn minutes(bias: i32) -> SignedDuration {
    SignedDuration::from_mins(bias.into())
}

fn utc(time: FileTime) -> Option<DateTime> {
    let since_unix = time.get().checked_sub(FILETIME_UNIX_EPOCH)?;
    let timestamp = Timestamp::from_nanosecond(i128::from(since_unix) * 100).ok()?;
    Some(timestamp.to_zoned(jiff::tz::TimeZone::UTC).datetime())
}

/// The local time in a year at which a `SYSTEMTIME` lets a time begin: a date, or for the year 0 a
/// weekday of a month, where the fifth is the last. `None` if it never begins.
fn begin(rule: &[u16; 8], year: i16) -> Option<DateTime> {
    let [rule_year, month, weekday, day, hour, minute, second, _] = *rule;
    let month = i8::try_from(month).ok()?;
    let day = i8::try_from(day).ok()?;
    let date = if rule_year == 0 {
        let weekday = Weekday::from_sunday_zero_offset(i8::try_from(weekday).ok()?).ok()?;
        let nth = if day == 5 { -1 } else { day };
        let first = Date::new(year, month, 1).ok()?;
        first.nth_weekday_of_month(nth, weekday).ok()?
    } else {
        Date::new(year, month, day).ok()?
    };
    let hour = i8::try_from(hour).ok()?;
    let minute = i8::try_from(minute).ok()?;
    let second = i8::try_from(second).ok()?;
    Some(date.to_datetime(jiff::civil::Time::new(hour, minute, second, 0).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(text: &str) -> [u16; 32] {
        let mut units = [0; 32];
        for (unit, of_text) in units.iter_mut().zip(text.encode_utf16()) {
            *unit = of_text;
        }
        units
    }

    fn pacific() -> TimeZone {
        TimeZone {
            bias: 480,
            standard_name: units("@tzres.dll,-212"),
            standard_date: [0, 11, 0, 1, 2, 0, 0, 0],
            standard_bias: 0,
            daylight_name: units("@tzres.dll,-211"),
            daylight_date: [0, 3, 0, 2, 2, 0, 0, 0],
            daylight_bias: -60,
        }
    }

    fn at(text: &str) -> FileTime {
        let timestamp: Timestamp = text.parse().unwrap();
        FileTime::new(timestamp.as_second() * 10_000_000 + FILETIME_UNIX_EPOCH)
    }

    #[test]
    fn numbers_of_the_resource_file_have_names() {
        for (stated, expected) in [
            ("@tzres.dll,-212", "Pacific Standard Time"),
            ("@tzres.dll,-211", "Pacific Daylight Time"),
            ("@tzres.dll,-321", "W. Europe Daylight Time"),
            ("@tzres.dll,-172", "Central Standard Time (Mexico)"),
            ("@tzres.dll,-932", "Coordinated Universal Time"),
            ("@tzres.dll,-1162", "UTC-02"),
            ("@tzres.dll,-1391", "UTC+13"),
            ("@tzres.dll,-210", "@tzres.dll,-210"),
            ("@tzres.dll,-9999", "@tzres.dll,-9999"),
            ("Mitteleuropäische Zeit", "Mitteleuropäische Zeit"),
            ("", ""),
        ] {
            assert_eq!(name(stated), expected, "{stated}");
        }
        assert!(NAMES.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn local_time_has_the_bias_that_is_in_force() {
        // The changes of 2020 were on March 8 at 10:00 UTC, and on November 1 at 9:00 UTC.
        for (time, name, offset_minutes) in [
            ("2020-03-08T09:59:59Z", "Pacific Standard Time", -480),
            ("2020-03-08T10:00:00Z", "Pacific Daylight Time", -420),
            ("2020-11-01T08:59:59Z", "Pacific Daylight Time", -420),
            ("2020-11-01T09:00:00Z", "Pacific Standard Time", -480),
        ] {
            let local = LocalTime::at(&pacific(), at(time));
            assert_eq!((&*local.name, local.offset_minutes), (name, offset_minutes));
        }
    }

    #[test]
    fn zones_without_changes_have_standard_time() {
        let mut zone = pacific();
        zone.daylight_date = [0; 8];
        let local = LocalTime::at(&zone, at("2020-07-01T00:00:00Z"));
        assert_eq!(local.offset_minutes, -480);
        // In the south, daylight saving time crosses the end of the year.
        zone.daylight_date = [0, 10, 0, 5, 2, 0, 0, 0];
        zone.standard_date = [0, 4, 0, 1, 3, 0, 0, 0];
        for (time, offset_minutes) in [
            ("2020-01-01T00:00:00Z", -420),
            ("2020-07-01T00:00:00Z", -480),
            ("2020-12-01T00:00:00Z", -420),
        ] {
            assert_eq!(
                LocalTime::at(&zone, at(time)).offset_minutes,
                offset_minutes
            );
        }
    }
}
