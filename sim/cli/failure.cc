#include "sim/cli/failure.h"

#include <fmt/format.h>

#include <cstdio>
#include <new>
#include <string_view>

#include "isa/base/error.h"

namespace trn::cli {
namespace {

int our_fault(std::string_view what, const std::filesystem::path& input) {
  fmt::print(stderr,
             "trn-sim: internal error: {}\n"
             "This is a fault of trn-sim, not of your input. Please report it, with this message, "
             "the command line and the output of `trn-sim --version`.\n",
             what);
  if (!input.empty()) {
    std::error_code code;
    const auto path = std::filesystem::absolute(input, code);
    fmt::print(stderr, "The input was left as it is, please keep it: {}\n",
               code ? input.string() : path.string());
  }
  return kExitOurFault;
}

}  // namespace

int report_failure(const std::exception_ptr& failure, const std::filesystem::path& input) {
  try {
    std::rethrow_exception(failure);
  } catch (const InputError& error) {
    fmt::print(stderr, "trn-sim: {}\n", error.what());
    return kExitBadInput;
  } catch (const DeadlockError& error) {
    fmt::print(stderr, "trn-sim: deadlock: {}\n", error.what());
    return kExitDeadlock;
  } catch (const CapacityError& error) {
    fmt::print(stderr, "trn-sim: does not fit in memory: {}\n", error.what());
    return kExitDoesNotFit;
  } catch (const std::bad_alloc&) {
    return our_fault("this host has no memory left", input);
  } catch (const std::exception& error) {
    return our_fault(error.what(), input);
  } catch (...) {
    return our_fault("an exception of unknown type", input);
  }
}

}  // namespace trn::cli
