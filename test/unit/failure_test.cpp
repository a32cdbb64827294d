#include "core/failure.hpp"

#include <gtest/gtest.h>

namespace idem {
namespace {

TEST(Failure, IsTheSameWhateverItsNumbers) {
    EXPECT_TRUE(SameButForNumbers("", ""));
    EXPECT_TRUE(SameButForNumbers("no", "no"));
    EXPECT_TRUE(SameButForNumbers("file \"base/5/16487\": No space", "file \"base/5/9\": No space"));
    EXPECT_TRUE(SameButForNumbers("page 9", "page 10"));
}

TEST(Failure, IsAnotherWhereWordsDiffer) {
    EXPECT_FALSE(SameButForNumbers("no", "not"));
    EXPECT_FALSE(SameButForNumbers("not", "no"));
    EXPECT_FALSE(SameButForNumbers("", "1"));
    EXPECT_FALSE(SameButForNumbers("1", ""));
    EXPECT_FALSE(SameButForNumbers("file 1", "file x"));
    EXPECT_FALSE(SameButForNumbers("file x", "file 1"));
    EXPECT_FALSE(SameButForNumbers("1a", "1b"));
    EXPECT_FALSE(SameButForNumbers("1", "1a"));
}

}  // namespace
}  // namespace idem
