#include "sim/cli/failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>

#include "isa/base/check.h"
#include "isa/base/error.h"

namespace trn::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Reported {
  int code = 0;
  std::string message;
};

template <class Error>
Reported reported(const Error& error, const std::filesystem::path& input = {}) {
  testing::internal::CaptureStderr();
  const int code = report_failure(std::make_exception_ptr(error), input);
  return {code, testing::internal::GetCapturedStderr()};
}

TEST(Failure, UsersErrorsHaveTheirCodes) {
  EXPECT_EQ(reported(InputError({"a.bin"}, "", "is empty")).code, 2);
  EXPECT_EQ(reported(InputError({"a.bin"}, "", "is empty")).message, "trn-sim: a.bin: is empty\n");
  EXPECT_EQ(reported(DeadlockError("x")).code, 3);
  EXPECT_EQ(reported(CapacityError("x")).code, 4);
}

TEST(Failure, AnythingElseIsOursAndSaysWhereTheInputIs) {
  const Reported check = reported(InternalError("check failed"), "some/trace.bin");
  EXPECT_EQ(check.code, 70);
  EXPECT_THAT(check.message,
              AllOf(HasSubstr("check failed"), HasSubstr("fault of trn-sim"),
                    HasSubstr("report it"), HasSubstr("some/trace.bin"), HasSubstr("/some/")));
  EXPECT_EQ(reported(std::bad_alloc()).code, 70);
  EXPECT_EQ(reported(std::runtime_error("x")).code, 70);
  EXPECT_EQ(reported(7).code, 70);
  EXPECT_THAT(reported(7).message, Not(HasSubstr("The input")));
}

}  // namespace
}  // namespace trn::cli
