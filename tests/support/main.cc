#include <gmock/gmock.h>
#include <gtest/gtest.h>

// The packaged SystemC brings a main that calls sc_main. Ours is in the executable, so it wins, and
// the library only needs the symbol. Where SystemC is absent nobody asks for it.
extern "C" int sc_main(int /*argc*/, char** /*argv*/) { return 1; }

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
