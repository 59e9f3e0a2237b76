#pragma once

#include <exception>
#include <filesystem>

namespace trn::cli {

/// Exit codes that scripts rely on.
inline constexpr int kExitDone = 0;
inline constexpr int kExitBadInput = 2;
inline constexpr int kExitDeadlock = 3;
inline constexpr int kExitDoesNotFit = 4;
inline constexpr int kExitOurFault = 70;

/// Says on stderr what went wrong, and gives the exit code for it. Anything but the user's errors
/// is a fault of ours: the message asks for a report, and says where `input`, which may be empty,
/// is.
int report_failure(const std::exception_ptr& failure, const std::filesystem::path& input);

}  // namespace trn::cli
