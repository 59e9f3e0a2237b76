#include "isa/base/units.h"

#include <gtest/gtest.h>

namespace trn {
namespace {

TEST(Units, ReadsEachDimensionExactly) {
  EXPECT_EQ(parse_quantity("2.4 GHz", "Hz").value, 2'400'000'000.0);
  EXPECT_EQ(parse_quantity("0.96GHz", "Hz").value, 960'000'000.0);
  EXPECT_EQ(parse_quantity("716 GB/s", "B/s").value, 716e9);
  EXPECT_EQ(parse_quantity("27.2 B/ns", "B/s").value, 27.2e9);
  EXPECT_EQ(parse_quantity("200 Gbit/s", "B/s").value, 25e9);
  EXPECT_EQ(parse_quantity("600 ns", "ns").value, 600.0);
  EXPECT_EQ(parse_quantity("3413.33 ns", "ns").value, 3413.33);
  EXPECT_EQ(parse_quantity("1.3 us", "ns").value, 1300.0);
  EXPECT_EQ(parse_quantity("-0.5", "").value, -0.5);
  EXPECT_EQ(parse_quantity("1e-3", "").value, 1e-3);
}

TEST(Units, TellsDecimalFromBinaryPrefixes) {
  EXPECT_EQ(parse_whole<std::uint64_t>("224 KiB", "bytes").value, 224U * 1024U);
  EXPECT_EQ(parse_whole<std::uint64_t>("224 kB", "bytes").value, 224'000U);
  EXPECT_EQ(parse_whole<std::uint64_t>("24 GiB", "bytes").value, 24ULL << 30U);
  EXPECT_EQ(parse_whole<std::uint64_t>("24 GB", "bytes").value, 24'000'000'000U);
  EXPECT_EQ(parse_whole<std::uint64_t>("212984 B", "bytes").value, 212'984U);
  EXPECT_EQ(parse_whole<std::uint64_t>("1.5 KiB", "bytes").value, 1536U);
}

TEST(Units, CyclesAndCountsMayNameTheirUnit) {
  EXPECT_EQ(parse_whole<std::uint32_t>("64", "cycles").value, 64U);
  EXPECT_EQ(parse_whole<std::uint32_t>("64 cycles", "cycles").value, 64U);
  EXPECT_EQ(parse_whole<std::uint32_t>("16", "count").value, 16U);
  EXPECT_EQ(parse_quantity("2.235 USD/h", "USD/h").value, 2.235);
}

TEST(Units, AFieldMayBeHeldInALargerUnit) {
  EXPECT_EQ(parse_quantity("716 GB/s", "GB/s").value, 716.0);
  EXPECT_EQ(parse_quantity("0.5 TB/s", "GB/s").value, 500.0);
}

TEST(Units, SaysWhatItExpected) {
  EXPECT_EQ(parse_quantity("2.4 GB", "Hz").problem,
            "expected a frequency such as 2.4 GHz, got '2.4 GB'");
  EXPECT_EQ(parse_quantity("2.4", "Hz").problem, "expected a frequency such as 2.4 GHz, got '2.4'");
  EXPECT_EQ(parse_quantity("716 GB", "B/s").problem,
            "expected a bandwidth such as 716 GB/s, got '716 GB'");
  EXPECT_EQ(parse_quantity("224", "bytes").problem, "expected a size such as 224 KiB, got '224'");
  EXPECT_EQ(parse_quantity("fast", "ns").problem, "expected a time such as 600 ns, got 'fast'");
  EXPECT_EQ(parse_quantity("64 ns", "cycles").problem,
            "expected a number of cycles such as 64, got '64 ns'");
  EXPECT_EQ(parse_quantity("", "count").problem, "expected a count such as 16, got nothing");
  EXPECT_EQ(parse_quantity("3 x", "").problem, "expected a number, got '3 x'");
}

TEST(Units, RefusesLeadingZerosAndOtherBases) {
  EXPECT_EQ(parse_whole<std::uint32_t>("010", "count").problem,
            "expected a number without leading zeros, got '010'");
  EXPECT_EQ(parse_quantity("00.5", "").problem,
            "expected a number without leading zeros, got '00.5'");
  EXPECT_EQ(parse_whole<std::uint32_t>("0x10", "count").problem,
            "expected a count such as 16, got '0x10'");
  EXPECT_FALSE(parse_quantity("inf", ""));
  EXPECT_FALSE(parse_quantity("nan", ""));
  EXPECT_FALSE(parse_quantity(".5", ""));
  EXPECT_FALSE(parse_quantity("1_000", ""));
  EXPECT_EQ(parse_quantity("0.5", "").value, 0.5);
}

TEST(Units, WholeNumbersAreCheckedForRangeAndFraction) {
  EXPECT_EQ(parse_whole<std::uint8_t>("255", "count").value, 255U);
  EXPECT_EQ(parse_whole<std::uint8_t>("256", "count").problem, "expected 0 to 255, got '256'");
  EXPECT_EQ(parse_whole<std::uint32_t>("-1", "count").problem,
            "expected 0 to 4294967295, got '-1'");
  EXPECT_EQ(parse_whole<std::int32_t>("-5", "").value, -5);
  EXPECT_EQ(parse_whole<std::uint32_t>("1.5", "count").problem,
            "expected a whole number, got '1.5'");
  EXPECT_EQ(parse_whole<std::uint32_t>("0.3 KiB", "bytes").problem,
            "expected a whole number of bytes, got '0.3 KiB'");
  EXPECT_EQ(parse_whole<std::uint64_t>("18446744073709551615", "").value,
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_FALSE(parse_whole<std::uint64_t>("18446744073709551616", ""));
  EXPECT_EQ(parse_whole<std::int64_t>("-9223372036854775808", "").value,
            std::numeric_limits<std::int64_t>::min());
  EXPECT_FALSE(parse_whole<std::uint32_t>("8 GiB", "bytes"));
  EXPECT_EQ((parse_whole<std::uint32_t>("3", "count", 4, 8).problem), "expected 4 to 8, got '3'");
}

TEST(Units, RefusesNumbersOutOfRange) {
  EXPECT_FALSE(parse_quantity("1e999", ""));
  EXPECT_FALSE(parse_quantity("1e99999999999999999999", ""));
  EXPECT_FALSE(parse_whole<std::uint64_t>("1e30", ""));
}

TEST(Units, WritesWhatPeopleWrite) {
  EXPECT_EQ(format_quantity(2.4e9, "Hz"), "2.4 GHz");
  EXPECT_EQ(format_quantity(0.96e9, "Hz"), "960 MHz");
  EXPECT_EQ(format_quantity(716e9, "B/s"), "716 GB/s");
  EXPECT_EQ(format_quantity(224 * 1024, "bytes"), "224 KiB");
  EXPECT_EQ(format_quantity(212984, "bytes"), "212984 B");
  EXPECT_EQ(format_quantity(24.0 * (1ULL << 30U), "bytes"), "24 GiB");
  EXPECT_EQ(format_quantity(600, "ns"), "600 ns");
  EXPECT_EQ(format_quantity(3413.33, "ns"), "3413.33 ns");
  EXPECT_EQ(format_quantity(0.25, "ns"), "0.25 ns");
  EXPECT_EQ(format_quantity(0, "bytes"), "0 B");
  EXPECT_EQ(format_quantity(64, "cycles"), "64");
}

TEST(Units, WhatIsWrittenReadsBackTheSame) {
  for (const std::string_view unit : {"Hz", "B/s", "bytes", "ns", "cycles", "", "GB/s", "us"}) {
    for (const double value : {0.0, 1.0, 0.1, 1.0 / 3, 27.2e9, 6.02214076e23, 4096.0, 417e-3,
                               3413.3333333333335, 1024.0 * 1023, 1e-9}) {
      EXPECT_EQ(parse_quantity(format_quantity(value, unit), unit).value, value)
          << value << ' ' << unit;
    }
  }
}

}  // namespace
}  // namespace trn
