#include <gtest/gtest.h>

#include <systemc>

namespace {

/// SystemC's warnings throw, so that none passes unseen.
class SystemCReports : public testing::Environment {
 public:
  void SetUp() override {
    sc_core::sc_report_handler::set_actions(sc_core::SC_WARNING,
                                            sc_core::SC_DISPLAY | sc_core::SC_THROW);
  }
};

[[maybe_unused]] const testing::Environment* const kSystemCReports =
    testing::AddGlobalTestEnvironment(new SystemCReports);

}  // namespace
