#include "tests/support/run_cli.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "tests/support/paths.h"
#include "tests/support/scratch.h"

namespace trn::test {

CliResult run_cli(const std::vector<std::string>& arguments, const std::filesystem::path& from) {
  const std::filesystem::path folder = scratch_folder();
  const std::filesystem::path out = folder / "stdout.txt";
  const std::filesystem::path err = folder / "stderr.txt";
  std::vector<std::string> words = {build_path("bin/trn-sim").string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  const pid_t child = fork();
  if (child == 0) {
    const bool ready = (from.empty() || chdir(from.c_str()) == 0) &&
                       std::freopen(out.c_str(), "w", stdout) != nullptr &&
                       std::freopen(err.c_str(), "w", stderr) != nullptr;
    if (ready) execv(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CliResult result;
  if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
  result.out = read_text(out);
  result.err = read_text(err);
  return result;
}

}  // namespace trn::test
