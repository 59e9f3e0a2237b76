#include "isa/base/yaml_load.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/support/scratch.h"

namespace trn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

enum class Shape : std::uint8_t { Torus, Mesh };

struct Engine {
  double clock = 0;
  std::uint32_t lanes = 0;
  static constexpr auto fields() {
    return std::tuple{Field{"clock", &Engine::clock, "Hz", "clock"},
                      Field{"lanes", &Engine::lanes, "count", "lanes"}};
  }
};

struct Machine {
  std::string name;
  Engine tensor;
  std::uint64_t size_bytes = 0;
  bool fast = false;
  Shape shape = Shape::Torus;
  std::optional<double> latency_ns;
  std::vector<std::uint32_t> sizes;
  std::map<std::string, double> constants;
  std::vector<Engine> others;
  static constexpr auto fields() {
    return std::tuple{Field{"name", &Machine::name, "", "its name"},
                      Field{"tensor", &Machine::tensor, "", "an engine"},
                      Field{"size", &Machine::size_bytes, "bytes", "memory"},
                      Field{"fast", &Machine::fast, "", "a switch"},
                      Field{"shape", &Machine::shape, "", "a choice"},
                      Field{"latency", &Machine::latency_ns, "ns", "may be absent"},
                      Field{"sizes", &Machine::sizes, "count", "a list"},
                      Field{"constants", &Machine::constants, "cycles", "by name"},
                      Field{"others", &Machine::others, "", "list of blocks"}};
  }
};

}  // namespace
template <>
struct EnumNames<Shape> {
  static constexpr std::array<std::string_view, 2> value = {"torus", "mesh"};
};
namespace {

constexpr std::string_view kGood = R"(name: small
tensor:
  clock: {value: 2.4 GHz, status: doc, source: docs/sources.md#clocks}
  lanes: 128
size: 224 KiB
fast: true
shape: mesh
sizes: [1, 2, 3]
constants:
  min_ii: 64 cycles
  start: 150
others:
  - clock: 1.2 GHz
    lanes: 8
  - clock: 0.96 GHz
    lanes: 4
)";

std::string with(std::string text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

Loaded<Machine> load_text(const std::string& text, LoadOptions options = {}) {
  return load<Machine>(parse_yaml(text, "m.yaml"), std::move(options));
}

std::string error_of(const std::string& text, LoadOptions options = {}) {
  try {
    load_text(text, std::move(options));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string error_after(std::string_view from, std::string_view to) {
  return error_of(with(std::string(kGood), from, to));
}

TEST(YamlLoad, ReadsEveryKindOfField) {
  const Machine machine = load_text(std::string(kGood)).value;
  EXPECT_EQ(machine.name, "small");
  EXPECT_EQ(machine.tensor.clock, 2.4e9);
  EXPECT_EQ(machine.tensor.lanes, 128U);
  EXPECT_EQ(machine.size_bytes, 224U * 1024U);
  EXPECT_TRUE(machine.fast);
  EXPECT_EQ(machine.shape, Shape::Mesh);
  EXPECT_FALSE(machine.latency_ns);
  EXPECT_THAT(machine.sizes, ElementsAre(1U, 2U, 3U));
  EXPECT_EQ(machine.constants.at("min_ii"), 64.0);
  EXPECT_EQ(machine.others.at(1).clock, 0.96e9);
}

TEST(YamlLoad, RemembersWhereValuesCameFrom) {
  const Provenance provenance = load_text(std::string(kGood)).provenance;
  const Origin& clock = provenance.at("tensor.clock");
  EXPECT_EQ(clock.value, "2.4 GHz");
  EXPECT_EQ(clock.file, "m.yaml");
  EXPECT_EQ(clock.line, 3U);
  EXPECT_EQ(clock.status, Status::Documented);
  EXPECT_EQ(clock.source, "docs/sources.md#clocks");
  EXPECT_EQ(provenance.at("others.1.lanes").line, 16U);
  EXPECT_EQ(provenance.at("sizes").value, "[1, 2, 3]");
}

TEST(YamlLoad, UnknownKeysNameTheNearest) {
  EXPECT_EQ(error_after("  lanes: 128", "  lanes: 128\n  clok: 1 GHz"),
            "m.yaml:5: tensor.clok: unknown key (did you mean 'clock'?)");
  EXPECT_EQ(error_after("name: small", "name: small\nzzzzzzzz: 1"),
            "m.yaml:2: zzzzzzzz: unknown key");
}

TEST(YamlLoad, RepeatedKeysAreErrors) {
  EXPECT_EQ(error_after("fast: true", "fast: true\nfast: false"),
            "m.yaml:7: key 'fast' is repeated, first in line 6");
}

TEST(YamlLoad, MissingKeysAreErrors) {
  EXPECT_EQ(error_after("  lanes: 128\n", ""), "m.yaml:3: tensor: missing key 'lanes'");
  EXPECT_EQ(error_after("name: small\n", ""), "m.yaml:1: missing key 'name'");
}

TEST(YamlLoad, IllTypedValuesAreErrors) {
  EXPECT_EQ(error_after("2.4 GHz", "2.4 GB"),
            "m.yaml:3: tensor.clock: expected a frequency such as 2.4 GHz, got '2.4 GB'");
  EXPECT_EQ(error_after("lanes: 128", "lanes: many"),
            "m.yaml:4: tensor.lanes: expected a count such as 16, got 'many'");
  EXPECT_EQ(error_after("lanes: 128", "lanes: 010"),
            "m.yaml:4: tensor.lanes: expected a number without leading zeros, got '010'");
  EXPECT_EQ(error_after("fast: true", "fast: yes"),
            "m.yaml:6: fast: expected true or false, got 'yes'");
  EXPECT_EQ(error_after("shape: mesh", "shape: mash"),
            "m.yaml:7: shape: expected torus or mesh, got 'mash' (did you mean 'mesh'?)");
  EXPECT_EQ(error_after("[1, 2, 3]", "3"), "m.yaml:8: sizes: expected a list such as [a, b]");
  EXPECT_EQ(error_after("[1, 2, 3]", "[1, 2.5]"),
            "m.yaml:8: sizes.1: expected a whole number, got '2.5'");
  EXPECT_EQ(error_after("lanes: 128", "lanes: [1]"),
            "m.yaml:4: tensor.lanes: expected a count such as 16, got a list");
  EXPECT_EQ(error_after("lanes: 128", "lanes:"),
            "m.yaml:4: tensor.lanes: expected a count such as 16, got nothing");
  EXPECT_EQ(error_of(with(std::string(kGood), "  min_ii: 64 cycles\n  start: 150\n", "  - 1\n")),
            "m.yaml:10: constants: expected a block of keys, got a list");
  EXPECT_EQ(error_after("fast: true", "fast: {valu: true}"),
            "m.yaml:6: fast.valu: unknown key (did you mean 'value'?)\n"
            "m.yaml:6: fast: missing key 'value'");
  EXPECT_EQ(error_after("status: doc", "status: sure"),
            "m.yaml:3: tensor.clock.status: expected doc, der, meas, disp or est, got 'sure'");
}

TEST(YamlLoad, AllErrorsOfAFileAreGathered) {
  std::string text = with(std::string(kGood), "lanes: 128", "lanes: -1");
  text = with(text, "fast: true", "fast: 1");
  EXPECT_EQ(error_of(text),
            "m.yaml:4: tensor.lanes: expected 0 to 4294967295, got '-1'\n"
            "m.yaml:6: fast: expected true or false, got '1'");
}

TEST(YamlLoad, EveryFactNeedsStatusAndSource) {
  const auto error = error_of(std::string(kGood), {.need_source = true});
  EXPECT_THAT(error, HasSubstr("m.yaml:4: tensor.lanes: expected {value: ..., status: ..., "
                               "source: ...}, status and source are missing\n"));
  EXPECT_THAT(error, testing::Not(HasSubstr("name")));
  EXPECT_THAT(error, testing::Not(HasSubstr("clock: expected {value: ..., status: ..., source: "
                                            "...}, status and source are missing\nm.yaml:4")));
}

TEST(YamlLoad, ABlockHandsItsStatusDown) {
  const std::string text =
      fmt::format("status: doc\nsource: docs/a.md#b\n{}",
                  with(std::string(kGood), "tensor:\n", "tensor:\n  status: meas\n"));
  const auto loaded = load_text(text, {.need_source = true});
  EXPECT_EQ(loaded.provenance.at("tensor.lanes").status, Status::Measured);
  EXPECT_EQ(loaded.provenance.at("tensor.lanes").source, "docs/a.md#b");
  EXPECT_EQ(loaded.provenance.at("tensor.clock").status, Status::Documented);
  EXPECT_EQ(loaded.provenance.at("size").status, Status::Documented);
}

TEST(YamlLoad, OverridesPassTheSameChecks) {
  const auto set = [](std::string_view text) {
    return LoadOptions{.overrides = {parse_override(text)}};
  };
  const auto loaded = load_text(std::string(kGood), set("tensor.clock=1.2 GHz"));
  EXPECT_EQ(loaded.value.tensor.clock, 1.2e9);
  EXPECT_EQ(loaded.provenance.at("tensor.clock").file, "command line");
  EXPECT_EQ(loaded.provenance.at("tensor.clock").source, "command line");
  EXPECT_EQ(load_text(std::string(kGood), set("latency=2 us")).value.latency_ns, 2000.0);
  EXPECT_EQ(load_text(std::string(kGood), set("constants.start=1")).value.constants["start"], 1.0);
  EXPECT_THAT(load_text(std::string(kGood), set("sizes=[7]")).value.sizes, ElementsAre(7U));
  EXPECT_EQ(error_of(std::string(kGood), set("tensor.clock=2.4 GB")),
            "command line: tensor.clock: expected a frequency such as 2.4 GHz, got '2.4 GB'");
  EXPECT_EQ(error_of(std::string(kGood), set("tensor.clok=1 GHz")),
            "command line: tensor.clok: unknown key (did you mean 'tensor.clock'?)");
  EXPECT_EQ(error_of(std::string(kGood), set("tensor.lanes=")),
            "command line: tensor.lanes: expected a value, got ''");
  EXPECT_EQ(error_of(std::string(kGood), set("tensor.lanes={a: 1}")),
            "command line: tensor.lanes: expected one value, got '{a: 1}'");
}

TEST(YamlLoad, AnOverrideHasAPathAndAValue) {
  EXPECT_THROW(parse_override("tensor.clock"), InputError);
  EXPECT_THROW(parse_override("=3"), InputError);
  EXPECT_EQ(parse_override("a.b=c=d").value, "c=d");
}

TEST(YamlLoad, ARenamedKeyWarns) {
  const LoadOptions options{.renamed = {{"tensor.frequency", "tensor.clock"}}};
  const auto loaded = load_text(with(std::string(kGood), "  clock: {", "  frequency: {"), options);
  EXPECT_EQ(loaded.value.tensor.clock, 2.4e9);
  EXPECT_THAT(loaded.warnings,
              ElementsAre("m.yaml:3: tensor.frequency: renamed, now 'tensor.clock'"));
  LoadOptions set = options;
  set.overrides = {parse_override("tensor.frequency=1 GHz")};
  const auto overridden = load_text(std::string(kGood), set);
  EXPECT_EQ(overridden.value.tensor.clock, 1e9);
  EXPECT_THAT(overridden.warnings,
              ElementsAre("command line: tensor.frequency: renamed, now 'tensor.clock'"));
}

TEST(YamlLoad, ADumpReadsBackTheSame) {
  const auto first = load_text(std::string(kGood));
  const std::string dumped = dump_yaml(first.value, first.provenance);
  EXPECT_THAT(dumped, HasSubstr("clock: {value: 2.4 GHz, status: doc, source: "
                                "\"docs/sources.md#clocks\"}  # m.yaml:3\n"));
  const auto second = load_text(dumped);
  EXPECT_EQ(dump_yaml(second.value, first.provenance), dumped);
  EXPECT_EQ(second.value.others.at(1).lanes, 4U);
}

TEST(YamlLoad, BlocksMayStandInAnotherFile) {
  const auto folder = test::scratch_folder();
  test::write_text(folder / "engine.yaml", "clock: 3 GHz\nlanes: 1\n");
  test::write_text(folder / "bad.yaml", "clock: 3 GHz\nlane: 1\n");
  const LoadOptions options{
      .find_include = [&](std::string_view, const std::string& name, const std::filesystem::path&) {
        return folder / name;
      }};
  const auto text = [&](std::string_view name) {
    const auto start = kGood.find("tensor:\n");
    const auto end = kGood.find("size:");
    return std::string(kGood.substr(0, start)) + "tensor: " + std::string(name) + "\n" +
           std::string(kGood.substr(end));
  };
  const auto loaded = load_text(text("engine.yaml"), options);
  EXPECT_EQ(loaded.value.tensor.clock, 3e9);
  EXPECT_EQ(loaded.provenance.at("tensor.clock").file, (folder / "engine.yaml").string());
  const std::string bad = (folder / "bad.yaml").string();
  EXPECT_EQ(error_of(text("bad.yaml"), options),
            bad + ":2: tensor.lane: unknown key (did you mean 'lanes'?)\n" + bad +
                ":1: tensor: missing key 'lanes'");
  EXPECT_EQ(error_of(text("none.yaml"), options), "m.yaml:2: tensor: cannot include 'none.yaml'\n" +
                                                      (folder / "none.yaml").string() +
                                                      ": no such file");
  EXPECT_EQ(error_of(text("engine.yaml")),
            "m.yaml:2: tensor: expected a block of keys, got 'engine.yaml'");
}

TEST(YamlParse, RefusesWhatIsNotOnePlainDocument) {
  const auto error = [](const std::string& text) {
    try {
      parse_yaml(text, "x.yaml");
    } catch (const InputError& caught) {
      return std::string(caught.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(error(""), "x.yaml: the file is empty");
  EXPECT_EQ(error("a: 1\n---\nb: 2\n"), "x.yaml: expected one YAML document");
  EXPECT_EQ(error("a: &x 1\nb: *x\n"),
            "x.yaml:1: anchors are not supported\nx.yaml:2: aliases are not supported");
  EXPECT_EQ(error("a: !!int 3\n"), "x.yaml:1: tags are not supported");
  EXPECT_EQ(error("? [a]\n: 1\n"), "x.yaml:1: expected a word as key");
  EXPECT_THAT(error("a: [1, 2\n"), HasSubstr("x.yaml:2: not valid YAML: "));
  EXPECT_THAT(error(std::string("a: \0b", 5)), HasSubstr("x.yaml: not a text file"));
  EXPECT_EQ(error(std::string(kYamlMaxBytes + 1, ' ')), "x.yaml: larger than 4 MiB");
}

TEST(YamlParse, DepthIsLimited) {
  for (const std::size_t depth : {std::size_t{33}, std::size_t{1000}, std::size_t{200'000}}) {
    const std::string flow = fmt::format("a: {}", std::string(depth, '['));
    EXPECT_THROW(parse_yaml(flow, "x.yaml"), InputError);
    const std::string maps = std::string(depth, '{');
    EXPECT_THROW(parse_yaml(maps, "x.yaml"), InputError);
  }
  std::string dashes;
  for (int i = 0; i < 100'000; ++i) dashes += "- ";
  EXPECT_THROW(parse_yaml(dashes, "x.yaml"), InputError);
  EXPECT_NO_THROW(
      parse_yaml(fmt::format("a: {}1{}", std::string(20, '['), std::string(20, ']')), "x.yaml"));
}

TEST(YamlParse, NoDamageCrashesIt) {
  // Bytes replaced, removed and repeated at random, the same ones each time.
  std::mt19937 random(7);
  constexpr std::string_view kBytes = "\"'#&*!|>%@`{}[],:- \n\t\r\\?~0aZ\x80\xff\x01";
  for (int round = 0; round < 3000; ++round) {
    std::string text(kGood);
    const std::size_t edits = 1 + random() % 6;
    for (std::size_t i = 0; i < edits; ++i) {
      const std::size_t at = random() % text.size();
      const std::size_t length = std::min<std::size_t>(1 + random() % 12, text.size() - at);
      switch (random() % 4) {
        case 0:
          text[at] = kBytes[random() % kBytes.size()];
          break;
        case 1:
          text.insert(at, 1, kBytes[random() % kBytes.size()]);
          break;
        case 2:
          text.erase(at, length);
          break;
        default:
          text.insert(random() % text.size(), text.substr(at, length));
      }
      if (text.empty()) text = std::string("a");
    }
    try {
      load_text(text);
    } catch (const InputError&) {  // the only way out
    }
  }
}

TEST(YamlParse, FilesMustBeReadable) {
  EXPECT_THROW(read_yaml("/no/such/file.yaml"), InputError);
  EXPECT_THROW(read_yaml(test::scratch_folder()), InputError);
}

}  // namespace
}  // namespace trn
