#include "sim/memory/hbm.h"

#include <gtest/gtest.h>
#include <tlm_utils/simple_initiator_socket.h>

#include <systemc>
#include <tlm>

#include "sim/core/simulation.h"
#include "tests/support/machines.h"

namespace trn::sim {
namespace {

using test::ns;

/// Asks for bytes, as a DMA engine does.
class Client : public sc_core::sc_module {
 public:
  explicit Client(const sc_core::sc_module_name& name) : sc_core::sc_module(name) {}
  tlm_utils::simple_initiator_socket<Client> socket{"socket"};

  /// Asks `delay` after now; returns the delay with the time of the transport added.
  Time transport(unsigned bytes, Time delay = 0, tlm::tlm_command command = tlm::TLM_READ_COMMAND) {
    tlm::tlm_generic_payload payload;
    payload.set_command(command);
    payload.set_data_length(bytes);
    payload.set_streaming_width(bytes);
    sc_core::sc_time time = sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(delay));
    socket->b_transport(payload, time);
    response = payload.get_response_status();
    return static_cast<Time>(time.value());
  }
  tlm::tlm_response_status response = tlm::TLM_INCOMPLETE_RESPONSE;
};

/// A stack of 1 MB at 10 GB/s, 0.1 ns a byte, with two clients.
class HbmTest : public testing::Test {
 protected:
  HbmTest() {
    first_.socket.bind(stack_.socket);
    second_.socket.bind(stack_.socket);
    sc_core::sc_start(sc_core::SC_ZERO_TIME);  // binds
  }
  static HbmConfig config() {
    HbmConfig config;
    config.stacks = 4;
    config.stack_size = 1'000'000;
    config.bandwidth_per_stack = 10e9;
    return config;
  }
  static void advance(Time to) {
    sc_core::sc_start(
        sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(to - Simulation::now())));
  }

  Simulation simulation_;
  HbmStack stack_{"hbm0", config()};
  Client first_{"first"};
  Client second_{"second"};
};

TEST_F(HbmTest, AnAccessTakesItsBytesAtTheRate) {
  EXPECT_EQ(first_.transport(512), from_ns(51.2));
  EXPECT_EQ(first_.response, tlm::TLM_OK_RESPONSE);
}

TEST_F(HbmTest, AccessesOfAllClientsShareTheRateInTheOrderOfAsking) {
  EXPECT_EQ(first_.transport(1000), ns(100));
  EXPECT_EQ(second_.transport(500), ns(150));
  EXPECT_EQ(first_.transport(1000), ns(250));
}

TEST_F(HbmTest, ReadsAndWritesShareTheRate) {
  EXPECT_EQ(first_.transport(1000, 0, tlm::TLM_READ_COMMAND), ns(100));
  EXPECT_EQ(first_.transport(1000, 0, tlm::TLM_WRITE_COMMAND), ns(200));
}

TEST_F(HbmTest, AnAccessAfterTheLastOneEndedDoesNotWait) {
  (void)first_.transport(1000);
  advance(ns(100));
  EXPECT_EQ(second_.transport(1000), ns(100));
}

TEST_F(HbmTest, AnAccessOneInstantBeforeTheLastOneEndsWaitsForThatInstant) {
  (void)first_.transport(1000);
  advance(ns(100) - 1);
  EXPECT_EQ(second_.transport(1000), ns(100) + 1);
}

TEST_F(HbmTest, AddsToTheDelayThatItIsGiven) {
  EXPECT_EQ(first_.transport(1000, ns(30)), ns(130));
  EXPECT_EQ(second_.transport(1000, ns(50)), ns(230));
}

TEST_F(HbmTest, RefusesMoreThanItHolds) {
  (void)first_.transport(1'000'000);
  EXPECT_EQ(first_.response, tlm::TLM_OK_RESPONSE);
  (void)first_.transport(1'000'001);
  EXPECT_EQ(first_.response, tlm::TLM_ADDRESS_ERROR_RESPONSE);
}

TEST_F(HbmTest, CountsItsBytes) {
  (void)first_.transport(1000);
  (void)second_.transport(24);
  EXPECT_EQ(stack_.bytes(), 1024);
}

}  // namespace
}  // namespace trn::sim
