#include "support.h"

TEST(Placeholder, Builds) { SUCCEED(); }
